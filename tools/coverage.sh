#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# After `make coverage` has run the tests: lines and branches executed, a line per file, then each
# line that was not executed, with the reason that tests/uncovered has for its function. Fails when
# one has no reason, or when less than 95 % of all lines were executed; with TESTS set, when only
# some tests were run, it just reports.
#
# A line was executed when any object executed it: a test that includes a source of core/ counts
# for that source. What the scripts (tests/*.sh) run does not count, because their programs are the
# plain build's.
set -eu
cd "$(dirname "$0")/.."

objects=${BUILD:-build}/cov/obj
least=95
[ -z "${TESTS:-}" ] || least=0

gcov_all() { # begins with the notes, not the counts: a file that nothing executed has notes alone
	find "$objects/core" "$objects/adapters" "$objects/tests" -name '*.gcno' | sort |
		while read -r notes; do
			gcov -t -b -c "${notes%.gcno}" 2>/dev/null
		done
}

gcov_all | awk -v least="$least" '
	FNR == NR { # tests/uncovered
		if (!/^#/ && NF > 2) {
			key = $1 " " $2
			sub(/^[^ ]+ +[^ ]+ +/, "")
			reason[key] = $0
		}
		next
	}
	/^ *-: *0:Source:/ {
		sub(/.*:Source:/, "")
		file = $0
		ours = file ~ /^(core|adapters)\/.*\.c$/
		if (ours && !(file in last)) {
			files[++count] = file
			last[file] = 0
		}
	}
	!ours { next }
	/^function / { owner = $2 }
	/^branch / { branches[file, line, $2] += $4 } # never executed: not a number, which is 0
	/^ *[^ :]+: *[1-9][0-9]*:/ {
		split($0, part, ":")
		line = part[2] + 0
		if (part[1] ~ /-$/)
			next
		executed[file, line] += part[1] # hashes and equal signs: 0
		name[file, line] = owner
		text[file, line] = $0
		if (line > last[file])
			last[file] = line
	}

	function row(what, lines, hit, ways, taken) {
		printf "%-40s %8d %7.1f%% %9s\n", what, lines, lines ? 100 * hit / lines : 100,
			ways ? sprintf("%.1f%%", 100 * taken / ways) : "-"
	}
	function count_branches(key, part) {
		for (key in branches) {
			split(key, part, SUBSEP)
			ways[part[1]]++
			taken[part[1]] += branches[key] > 0
		}
	}
	function count_lines(file, line) {
		for (line = 1; line <= last[file]; line++) {
			if ((file, line) in executed) {
				lines[file]++
				hit[file] += executed[file, line] > 0
			}
		}
	}
	function print_table(i, file) {
		printf "%-40s %8s %8s %9s\n", "file", "lines", "covered", "branches"
		count_branches()
		for (i = 1; i <= count; i++) {
			file = files[i]
			count_lines(file)
			row(file, lines[file], hit[file], ways[file], taken[file])
			all += lines[file]
			all_hit += hit[file]
			all_ways += ways[file]
			all_taken += taken[file]
		}
		if (all_hit)
			row("all", all, all_hit, all_ways, all_taken)
	}
	function print_line(file, line, key, words) {
		key = file " " name[file, line]
		words = text[file, line]
		sub(/^[^:]*:[^:]*:[ \t]*/, "", words)
		printf "%s:%d  %s  %s  -- %s\n", file, line, name[file, line], words,
			key in reason ? reason[key] : "NO REASON in tests/uncovered"
		unexplained += !(key in reason)
	}
	function print_uncovered(i, line) {
		print "\nlines not executed: " all - all_hit
		for (i = 1; i <= count; i++)
			for (line = 1; line <= last[files[i]]; line++)
				if (((files[i], line) in executed) && !executed[files[i], line])
					print_line(files[i], line)
	}
	END {
		print_table()
		if (!all_hit) {
			print "nothing was executed"
			exit 1
		}
		print_uncovered()
		few = 100 * all_hit < least * all
		if (least && unexplained)
			print "FAIL: lines without a reason in tests/uncovered: " unexplained
		if (few)
			print "FAIL: less than " least " % of the lines were executed"
		exit few || (least && unexplained)
	}' tests/uncovered -
