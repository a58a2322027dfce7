# SPDX-License-Identifier: BSD-2-Clause
# gnuplot -e "dir='build/bench'; out='build/bench.svg'" bench/plot.gp
# Columns of the data: loop, devices or percentile, ours, other, ratio, its quartiles.
set terminal svg size 1000,760 dynamic background rgb 'white' font 'sans,12' noenhanced
set output out
ours = '#2166ac'; hand = '#999999'; thread = '#d6604d'
set style data histograms
set style fill solid 0.9 border -1
set style histogram clustered gap 1
set grid ytics lc rgb '#dddddd'
set key top left Left reverse samplen 2
set tics nomirror
set border 3
where(row, scale) = sprintf("< awk '$2 == %d' %s/%s.dat", scale, dir, row)
set multiplot layout 2,2 title 'mlx5vfio against glue written by hand (medians of the rounds)'

set title 'CPU time of an event, ns'
set yrange [0:*]
set offsets 0, 0, graph 0.25, 0
plot where('cpu', 1) using 3:xtic(1) title 'ours' lc rgb ours, '' using 4 title 'by hand' lc rgb hand

set title 'Latency from interrupt to process_events, median, us'
plot where('latency', 50) using ($3/1000):xtic(1) title 'ours' lc rgb ours, \
     '' using ($4/1000) title 'by hand' lc rgb hand, \
     where('thread', 50) using ($4/1000) title 'thread and handover' lc rgb thread

set title 'Wakeups a second of a loop with 256 idle devices'
plot where('idle', 256) using 3:xtic(1) title 'ours' lc rgb ours, '' using 4 title 'by hand' lc rgb hand

set title 'From fault to callback (ours) or abort (by hand), ms'
plot where('fatal', 1) using 3:xtic(1) title 'fatal, ours' lc rgb ours, \
     '' using 4 title 'fatal, by hand' lc rgb hand, \
     where('freeze', 1) using 3 title 'stall, ours' lc rgb '#92c5de', \
     '' using 4 title 'stall, by hand' lc rgb '#dddddd'
unset multiplot
