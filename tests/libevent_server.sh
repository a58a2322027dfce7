#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# examples/libevent-server, built with its own Makefile and asked with curl before, during and after the
# death of one of its two devices.
# sim: none; timeout=120 seconds=8
# shellcheck disable=SC2317 # functions are called by check
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL http_proxy HTTP_PROXY ALL_PROXY

build=$(realpath "${BUILD:-build}")
bin=$build/bin
program=$build/examples/libevent-server
work=$(mktemp -d)
failed=0
server=
asker=

for tool in curl python3; do
	command -v $tool >/dev/null || { echo "$tool is not here"; exit 77; }
done
if [ ! -e "$build/lib/libmlx5vfio-libevent.so" ]; then
	echo 'the libevent adapter is not built'
	exit 77
fi

clean_up() {
	touch "$work/enough"
	[ -z "$server" ] || kill "$server" 2>/dev/null
	wait
	rm -rf "$work"
}
trap clean_up EXIT

check() { # WHAT COMMAND…
	local what=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		echo "ok   $what"
	else
		echo "FAIL $what"
		sed 's/^/     /' "$work/log"
		failed=1
	fi
}

wait_for() { # SECONDS COMMAND…
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

start() { # leaves $server and $url
	: >"$work/out"
	"$bin/mlx5vfio-sim" --devices 2 --report --socket "$work/control" -- \
		"$program" 0 0000:b0:00.0 0000:b1:00.0 >"$work/out" 2>"$work/err" &
	server=$!
	wait_for 20 grep -q '^listening' "$work/out" || { cat "$work/err"; echo 'FAIL no server'; exit 1; }
	url=$(sed -n 's/^listening on //p' "$work/out")
}

stop() { # by SIGTERM: leaves its exit status in $status
	kill "$server"
	wait "$server"
	status=$?
	server=
}

answers() { # STATUS PATH [PATTERN]: the body in $work/body
	local got
	got=$(curl -s --max-time 20 -o "$work/body" -w '%{http_code}' "$url$2")
	cat "$work/body"
	echo "status $got"
	[ "$got" = "$1" ] && grep -qE -- "${3:-}" "$work/body"
}

is_json() {
	python3 -m json.tool "$work/body"
}

control() {
	"$bin/mlx5vfio-simctl" --socket "$work/control" "$@"
}

# What promtool checks and more: order, one family in one place, names, labels, values, no series twice.
strict() {
	python3 - "$work/body" <<-'END'
		import re, sys
		text = open(sys.argv[1], encoding='utf-8', newline='').read()
		assert text.endswith('\n') and '\r' not in text and '\n\n' not in text
		NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
		LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
		SAMPLE = re.compile(r'(%s)\{(%s(?:,%s)*)\} (\S+)' % (NAME, LABEL, LABEL))
		family = kind = helped = None
		families, series = set(), set()
		for line in text[:-1].split('\n'):
		    if line.startswith('# HELP '):
		        helped, words = line[7:].split(' ', 1)
		        assert re.fullmatch(NAME, helped) and words.strip() == words != '', line
		    elif line.startswith('# TYPE '):
		        family, kind = line[7:].split(' ')
		        assert family == helped and family not in families, line
		        assert not re.search('counter|gauge', family), line
		        assert kind in ('counter', 'gauge') and (kind == 'counter') == family.endswith('_total'), line
		        families.add(family)
		    else:
		        match = SAMPLE.fullmatch(line)
		        assert match and match[1] == family, line
		        assert (match[1], match[2]) not in series, line
		        series.add((match[1], match[2]))
		        value = float(match[3])
		        assert value == value and value >= 0, line
		assert len(families) >= 10 and len(series) == 2 * len(families)
		print(len(families), 'families', len(series), 'series')
	END
}

one_is_up() {
	grep -qx 'mlx5vfio_up{device="0000:b0:00.0"} 0' "$work/body" &&
		grep -qx 'mlx5vfio_up{device="0000:b1:00.0"} 1' "$work/body"
}

# Of device 1; a family without its samples is none, so a name that is wrong is not 0 either.
metric_is() { # FAMILY VALUE
	curl -sS "$url/metrics" | grep -qxF "mlx5vfio_$1{device=\"0000:b1:00.0\"} $2"
}

# By force, into the event queue that the program has opened: the first after libmlx5's own.
overrun_port_queue() {
	local number
	for ((number = 2; number < 64; number++)); do
		control overrun 1 "$number" && return
	done
	return 1
}

check_metrics() { # WHEN
	check "metrics $1" answers 200 /metrics
	check "metrics $1, strict parser" strict
	if command -v promtool >/dev/null; then
		# shellcheck disable=SC2016 # for the inner shell
		check "metrics $1, promtool" sh -c '[ -z "$(promtool check metrics 2>&1 <"$0")" ]' "$work/body"
	fi
}

ask_all_the_time() { # until $work/enough is there: a line for each answer
	local path
	while [ ! -e "$work/enough" ]; do
		for path in /health/0000:b0:00.0 /health/0000:b1:00.0 /health /metrics; do
			echo "$path $(curl -s --max-time 20 -o /dev/null -w '%{http_code}' "$url$path")"
		done
	done
}

asked() { # TIMES
	[ "$(wc -l <"$work/answers")" -ge "$1" ]
}

# No answer is missing; those for the dying device change once; those for the other never.
no_request_lost() {
	awk '
		$2 != 200 && $2 != 503 { print "lost: " $0; bad = 1 }
		$2 == 503 && ($1 == "/metrics" || $1 ~ /b1/) { print "refused: " $0; bad = 1 }
		$2 == 503 { dead[$1] = 1 }
		$2 == 200 && dead[$1] { print "back to life: " $0; bad = 1 }
		{ count[$1 " " $2]++ }
		END {
			for (key in count) print key ": " count[key]
			exit bad || !dead["/health/0000:b0:00.0"] || !dead["/health"]
		}' "$work/answers"
}

before_and_after() {
	[ "$(head -n 4 "$work/answers" | grep -c ' 200$')" -eq 4 ] &&
		[ "$(tail -n 4 "$work/answers" | grep -c ' 200$')" -eq 2 ]
}

check 'it builds, without a warning' make --no-print-directory -B -C examples/libevent-server \
	PROGRAM="$program" CFLAGS='-O2 -g -Werror -Wshadow -Wconversion' MLX5VFIO_CFLAGS="-I$PWD/include" \
	MLX5VFIO_LIBS="-L$build/lib -lmlx5vfio-libevent -lmlx5vfio -Wl,-rpath,$build/lib"
[ $failed -eq 0 ] || exit 1

echo '--- one of two devices dies'
start
check 'both live' answers 200 /health '"status":"ok","devices":'
check 'both live, JSON' is_json
check 'device 0' answers 200 /health/0000:b0:00.0 '"status":"ok"'
check 'device 1, in capitals' answers 200 /health/0000:B1:00.0 '"guarded":true'
check_metrics 'of two live devices'
check 'no such page' answers 404 /nothing
check 'no such device' answers 404 /health/0000:de:00.0

ask_all_the_time >"$work/answers" &
asker=$!
check 'it is asked all the time' wait_for 20 asked 80
check 'page requests meanwhile' control page-request 1 4 100 spaced
check 'a port goes down' control port 1 down
check 'which is counted' wait_for 20 metric_is port_down_total 1
check 'as an event too' metric_is events_total 1
check 'nothing was lost' metric_is port_overruns_total 0
check 'its firmware hangs: closing it takes minutes' control hang 0
check 'it dies' control fatal 0 0x1 0x1234
check 'it is told of' wait_for 20 grep -q '^0000:b0:00.0: fatal firmware error' "$work/out"
check 'the dead one' answers 503 /health/0000:b0:00.0 '"status":"dead".*"synd":1,.*"ext_synd":4660'
check 'the other' answers 200 /health/0000:b1:00.0 '"status":"ok"'
check 'the whole' answers 503 /health '"status":"degraded"'
check 'the whole, JSON' is_json
check_metrics 'of a dead device'
check 'up: 0 and 1' one_is_up
sleep 1
touch "$work/enough"
wait $asker
check "$(wc -l <"$work/answers") requests, none lost" no_request_lost
sort "$work/log" | sed 's/^/     /'
check '200 for all before; after, 503 for the dead one and the whole' before_and_after

SECONDS=0
stop
check 'SIGTERM: status 0' [ $status -eq 0 ]
check 'SIGTERM: it does not wait for the dead one' [ $SECONDS -lt 8 ]
check 'SIGTERM: the live one is closed' grep -q '^0000:b1:00.0: closed$' "$work/out"
check 'the simulator saw it closed' grep -q '0000:b1:00.0: closed: .* violations 0$' "$work/err"

echo '--- port events are lost'
start
check 'a port goes down' control port 1 down
check 'which is counted' wait_for 20 metric_is port_down_total 1
check 'its queue is overrun' overrun_port_queue
check 'which is counted' wait_for 20 metric_is port_overruns_total 1
check 'and told' wait_for 20 grep -q '^0000:b1:00.0: port events were lost$' "$work/err"
check 'the port goes up and down' control port 1 up 300 every 1ms
check 'which is counted as before, up' wait_for 20 metric_is port_up_total 150
check 'and down' wait_for 20 metric_is port_down_total 151
check_metrics 'after events were lost'
check 'a queue that cannot be opened again' control fail 1 301 3
check 'its queue is overrun' overrun_port_queue
check 'is told' wait_for 20 grep -q '^0000:b1:00.0: no port events: ' "$work/err"
check 'the device serves' answers 200 /health/0000:b1:00.0
stop
check 'SIGTERM after that: status 0' [ $status -eq 0 ]
check 'no rule was broken but by the overruns' grep -q '0000:b1:00.0: closed: .* violations 2$' "$work/err"

echo '--- other ends'
start
stop
check 'SIGTERM: status 0' [ $status -eq 0 ]
check 'SIGTERM: both are closed' [ "$(grep -c ': closed: .* violations 0$' "$work/err")" -eq 2 ]
start
check 'the kernel wants one back' control unbind 0 10s
check 'it was given back' answers 503 /health/0000:b0:00.0 '"status":"removed"'
check 'the other stays' answers 200 /health/0000:b1:00.0
stop
check 'SIGTERM after that: status 0' [ $status -eq 0 ]
"$bin/mlx5vfio-sim" -- "$program" 0 0000:de:00.0 >"$work/out" 2>"$work/err"
check 'a device that is not there: status 1' [ $? -eq 1 ]
check 'and the reason' grep -q '^0000:de:00.0: there is no such PCI device$' "$work/err"

exit $failed
