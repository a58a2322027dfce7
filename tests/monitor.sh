#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The command mlx5vfio: reasons and exit statuses when devices cannot be opened, its end by a signal,
# by time and by a reader that goes away, JSON that is JSON.
# sim: none; timeout=120 light seconds=21
set -u
cd "$(dirname "$0")/.." || exit 1

bin=${BUILD:-build}/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# The two devices of most tests; 0000:af:00.0 is there too and is no mlx5.
simulated() { "$bin/mlx5vfio-sim" --devices 2 "$@"; }

monitor() { # [FAULTS-FILE --] ARGUMENTS…: leaves $work/out, $work/err and $status
	local faults=()
	if [ "${2:-}" = -- ]; then
		faults=(--faults "$1")
		shift 2
	fi
	simulated "${faults[@]}" -- "$bin/mlx5vfio" monitor "$@" >"$work/out" 2>"$work/err"
	status=$?
}

say() { # ok|FAIL TEXT
	printf '%-4s %s\n' "$1" "$2"
	[ "$1" = ok ] && return
	failed=1
	sed 's/^/     out: /' "$work/out"
	sed 's/^/     err: /' "$work/err"
}

check_status() { # WANTED WHAT
	if [ "$status" -eq "$1" ]; then
		say ok "$2: exit status $1"
	else
		say FAIL "$2: exit status $status, not $1"
	fi
}

check_text() { # FILE PATTERN WHAT
	if grep -qE -- "$2" "$work/$1"; then
		say ok "$3: $(grep -m 1 -oE -- "$2" "$work/$1")"
	else
		say FAIL "$3: no line with $2 in $1"
	fi
}

no_text() { # FILE PATTERN WHAT
	if grep -qE -- "$2" "$work/$1"; then
		say FAIL "$3: $2 in $1"
	else
		say ok "$3"
	fi
}

cannot_open() { # WHAT PCI SENTENCE [FAULTS]: monitor and check say the same
	local faults=()
	: >"$work/faults"
	[ $# -lt 4 ] || echo "$4" >"$work/faults"
	monitor "$work/faults" -- --seconds 5 "$2"
	check_text err "^mlx5vfio: cannot open $2: .*$3" "$1"
	check_status 2 "$1"

	[ $# -lt 4 ] || faults=(--faults "$work/faults")
	simulated "${faults[@]}" -- "$bin/mlx5vfio" check "$2" >"$work/out" 2>"$work/err"
	status=$?
	check_text out "^$2: .*$3" "$1, by check"
	check_status 2 "$1, by check"
}

is_json() { # WHAT: every line of out is an object with these keys
	if /usr/bin/python3 -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert lines and all(isinstance(line["time"], float) for line in lines)
assert all({"event", "device"} <= line.keys() for line in lines)
' "$work/out" 2>>"$work/err"; then
		say ok "$1: $(wc -l <"$work/out") lines, each a JSON object"
	else
		say FAIL "$1: not JSON"
	fi
}

wait_for() { # PATTERN: until a program in the background has printed it
	local i
	for ((i = 0; i < 100; i++)); do
		grep -q "$1" "$work/out" && return
		sleep 0.1
	done
	say FAIL "no line with $1 in ten seconds"
}

end_by_signal() { # SIGNAL
	: >"$work/out" # what the one before has said must not be taken for this one's
	# shellcheck disable=SC2016 # for the inner shell
	simulated -- sh -c 'echo $$ >"$0"; exec "$@"' "$work/pid" \
		"$bin/mlx5vfio" monitor 0000:b0:00.0 0000:b1:00.0 >"$work/out" 2>"$work/err" &
	local child=$!
	wait_for 'b0:00.0  opened'
	wait_for 'b1:00.0  opened'
	kill -s "$1" "$(cat "$work/pid")"
	wait "$child"
	status=$?
	check_status 0 "ended by $1"
	check_text out '0000:b0:00.0  closed in' "ended by $1, device 0"
	check_text out '0000:b1:00.0  closed in' "ended by $1, device 1"
	check_text out '^device +state +seconds +wakeups +ticks +calls +errors +samples' "ended by $1, table"
}

echo '--- reasons'
cannot_open 'absent device' 0000:de:00.0 'there is no such PCI device'
cannot_open 'malformed name' b0:00 'the PCI name is malformed'
cannot_open 'other malformed name' 0000:b0:00.8 'the PCI name is malformed'
cannot_open 'non-mlx5 device' 0000:af:00.0 'it is not an mlx5 device: its PCI ids are [0-9a-f]{4}:[0-9a-f]{4}'
cannot_open 'no permission' 0000:b0:00.0 'there is no permission to open /dev/vfio/10' '0ms deny 0'

monitor --seconds 1 0000:b0:00.0 0000:b0:00.0
check_text err 'cannot open 0000:b0:00.0: it is in use by this process already' 'opened twice'
check_status 2 'opened twice'
check_text out '0000:b0:00.0  closed in' 'opened twice, the first is served'

echo '0ms map-fail 0' >"$work/faults"
monitor "$work/faults" -- --seconds 1 0000:b0:00.0
check_text err 'cannot open 0000:b0:00.0: memory could not be mapped' 'locked memory'
check_status 2 'locked memory'

monitor --seconds 1 0000:de:00.0 0000:B0:00.0
check_text out '0000:B0:00.0  opened' 'one absent, the other is served, in capitals'
check_status 2 'one absent, the other is served'

simulated -- "$bin/mlx5vfio" check 0000:b0:00.0 >"$work/out" 2>"$work/err"
status=$?
check_text out '^0000:b0:00.0: can be opened$' 'check'
check_status 0 'check'

echo '--- ends'
end_by_signal INT
end_by_signal TERM
monitor --seconds 1 0000:b0:00.0
check_status 0 '--seconds'
simulated -- "$bin/mlx5vfio" monitor --seconds 5 0000:b0:00.0 2>"$work/err" >&-
status=$?
check_status 0 'closed stdout'
SECONDS=0
{
	simulated -- "$bin/mlx5vfio" monitor --json --seconds 60 0000:b0:00.0 2>"$work/err"
	echo $? >"$work/status"
} | head -n 1 >"$work/out"
status=$(cat "$work/status")
check_status 0 'a reader that goes away'
if [ $SECONDS -lt 30 ]; then
	say ok 'a reader that goes away: noticed while nothing happens'
else
	say FAIL "a reader that goes away: noticed after $SECONDS s"
fi
no_text err . 'a reader that goes away: nothing on stderr'

echo '--- usage'
for arguments in '' 'monitor' 'monitor --seconds x 0000:b0:00.0' 'monitor --loop none 0000:b0:00.0' \
	'monitor --interval 5 0000:b0:00.0' 'monitor --no-such 0000:b0:00.0' 'check' 'nothing'; do
	# shellcheck disable=SC2086 # words
	"$bin/mlx5vfio" $arguments >"$work/out" 2>"$work/err"
	status=$?
	check_status 1 "mlx5vfio $arguments"
done
for arguments in --version --help 'monitor --help' 'check --help'; do
	# shellcheck disable=SC2086 # words
	"$bin/mlx5vfio" $arguments >"$work/out" 2>"$work/err"
	status=$?
	check_status 0 "mlx5vfio $arguments"
done

echo '--- JSON'
cat >"$work/faults" <<END
100ms page-request 0 16 4 spaced
500ms syndrome 0 7
1s syndrome 0 0
END
monitor "$work/faults" -- --json --seconds 3 --interval 50 0000:b0:00.0 0000:de:00.0 $'"\\\x01\xff\xc3\xa9'
is_json 'all kinds of events'
check_status 2 'all kinds of events'
check_text out '"event":"open-failed","device":"0000:de:00.0","reason":"there is no such PCI device"' 'a reason'
check_text out '"event":"wakeups","device":"0000:b0:00.0","count":[0-9]+' 'wakeups'
check_text out '"event":"summary","device":"0000:b0:00.0","state":"closed"' 'the summary'

if ! grep -q '"guarded":true' "$work/out"; then
	echo 'no guard: a device that dies is not tried'
	exit $failed
fi
check_text out '"event":"health","device":"0000:b0:00.0","state":"warning"' 'a warning'
check_text out '"event":"health","device":"0000:b0:00.0","state":"cleared"' 'a warning that goes away'

echo '--- ports'
cat >"$work/faults" <<END
300ms port 0 down
400ms port 0 up
500ms port 1 down
END
monitor "$work/faults" -- --json --seconds 1 0000:b0:00.0 0000:b1:00.0
is_json 'port changes'
changes=$(sed -nE 's/.*"event":"port","device":"([^"]*)","port":1,"state":"([^"]*)".*/\1 \2/p' "$work/out" | tr '\n' ' ')
if [ "$changes" = '0000:b0:00.0 down 0000:b0:00.0 up 0000:b1:00.0 down ' ]; then
	say ok "port changes: $changes"
else
	say FAIL "port changes: $changes"
fi
check_status 0 'port changes'
monitor "$work/faults" -- --seconds 1 0000:b0:00.0
check_text out '0000:b0:00.0  port 1: down$' 'a port change as text'

echo '--- a device dies'
# not before it is open, on a busy machine either
echo '1s fatal 0 0x1 0x1234' >"$work/faults"
monitor "$work/faults" -- --json --seconds 2 --interval 100 0000:b0:00.0 0000:b1:00.0 0000:de:00.0
is_json 'a fatal device'
check_status 3 'a fatal device, and one that cannot be opened'
check_text out '"state":"fault","fault":"[^"]*","synd":1,.*"ext_synd":4660,"recovery_request":true' 'its report'
check_text out '"event":"closed","device":"0000:b0:00.0"' 'it is closed'
check_text out '"event":"closed","device":"0000:b1:00.0","error":0' 'the other goes on'
for fault in 'nic-disabled 0' 'nic-reset 0' 'pci-offline 0' 'freeze 0'; do
	echo "1s $fault" >"$work/faults"
	monitor "$work/faults" -- --interval 100 0000:b0:00.0
	check_text out 'fault: [^;]*' "$fault"
	check_status 3 "$fault: ends by itself"
done

echo '--- a device is asked back'
echo '300ms remove-request 0' >"$work/faults"
monitor "$work/faults" -- --json --seconds 2 --interval 100 0000:b0:00.0 0000:b1:00.0
check_text out '"event":"removal","device":"0000:b0:00.0"' 'removal'
check_text out '"time":[01][.][0-9]*,"event":"closed","device":"0000:b0:00.0","error":0' 'it is closed at once'
check_text out '"time":[2-9][.][0-9]*,"event":"closed","device":"0000:b1:00.0","error":0' 'the other goes on'
check_status 0 'removal'

exit $failed
