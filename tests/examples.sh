#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Each example under a fault script: it tells the fault in words and ends by itself, with the device
# closed and no rule of the hardware broken. The monitors end on SIGINT too; the example of event queues
# tells every kind of event.
# sim: none; timeout=120 light seconds=25
set -u
cd "$(dirname "$0")/.." || exit 1

build=${BUILD:-build}
pci=0000:b0:00.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

say() { # ok|FAIL TEXT
	printf '%-4s %s\n' "$1" "$2"
	[ "$1" = ok ] && return
	failed=1
	sed 's/^/     | /' "$work/out"
}

expect() { # NAME PATTERN
	if grep -qE -- "$2" "$work/out"; then
		say ok "$1: $(grep -m 1 -oE -- "$2" "$work/out")"
	else
		say FAIL "$1: no line with $2"
	fi
}

run() { # NAME ARGUMENTS…: under $work/faults, at most 30 s; leaves out and status
	timeout -k 5 30 "$build/bin/mlx5vfio-sim" --faults "$work/faults" --report \
		"$build/examples/$1" "${@:2}" >"$work/out" 2>&1
	status=$?
}

ends_with() { # STATUS NAME
	if [ "$status" -eq "$1" ]; then
		say ok "$2: exit status $1"
	else
		say FAIL "$2: exit status $status, not $1"
	fi
}

dies() { # NAME
	echo '1500ms fatal 0 0x1' >"$work/faults"
	run "$1" $pci
	expect "$1" "^$pci: fatal firmware error"
	expect "$1" "$pci: closed: .*, violations 0$"
	ends_with 0 "$1, on a device that dies"
}

cannot_open() { # NAME
	: >"$work/faults"
	run "$1" 0000:af:00.0
	expect "$1" 'it is not an mlx5 device'
	ends_with 1 "$1, on another device"
	run "$1"
	expect "$1" "$1 PCI-NAME"
	ends_with 1 "$1, without a name"
}

warned() { # NAME: a syndrome that comes and goes
	printf '%s\n' '300ms syndrome 0 0x10' '1100ms syndrome 0 0' '1700ms remove-request 0' >"$work/faults"
	run "$1" $pci
	expect "$1" "^$pci: warning, syndrome 0x10 \(high temperature\)"
	expect "$1" "^$pci: the warning is over"
	expect "$1" "^$pci: the kernel wants it back"
	expect "$1" "^$pci: closed$"
	ends_with 0 "$1, asked to give the device back"
}

in_background() { # NAME: leaves its parent in child
	: >"$work/out" # what the one before has said must not be taken for this one's
	# shellcheck disable=SC2016 # for the inner shell
	"$build/bin/mlx5vfio-sim" --report --socket "$work/control" -- \
		sh -c 'echo $$ >"$0"; exec stdbuf -oL "$@"' "$work/pid" \
		"$build/examples/$1" $pci >"$work/out" 2>&1 &
	child=$!
}

wait_for() { # TIMES PATTERN: at most 20 s; expect() tells when it has not come
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(grep -cE -- "$2" "$work/out")" -ge "$1" ] && return
		sleep 0.1
	done
}

interrupt() {
	kill -INT "$(cat "$work/pid")"
	wait "$child"
	status=$?
}

interrupted() { # NAME
	in_background "$1"
	wait_for 1 'goes on'
	interrupt
	expect "$1" "^$pci: the program goes on"
	expect "$1" "^$pci: closed$"
	expect "$1" "$pci: closed: .*, violations 0$"
	ends_with 0 "$1, ended by SIGINT"
}

control() {
	"$build/bin/mlx5vfio-simctl" --socket "$work/control" "$@" || say FAIL "mlx5vfio-simctl $*"
}

number_of() { # WORDS: the number after them, on the last line that has them
	sed -nE "s/.*$1 ([0-9]+).*/\\1/p" "$work/out" | tail -n 1
}

port_and_cq() { # NAME TIMES: what comes of a port and of the CQ, the TIMESth time
	local cq
	wait_for "$2" 'reports to event queue'
	cq=$(number_of CQ)
	control port 0 down
	control port 0 up
	control cq-event 0 "$cq" 3
	control cq-error 0 "$cq"
	wait_for 3 "completion: CQ $cq,"
	wait_for 1 "CQ error: CQ $cq\$"
	expect "$1" "^$pci: CQ error: CQ $cq\$"
	expect "$1" "^$pci: completion: CQ $cq, 0 entries$"
	counts "$1" 3 "completion: CQ $cq,"
	counts "$1" "$2" 'port state change: port 1, state 1$'
	counts "$1" "$2" 'port state change: port 1, state 4$'
}

counts() { # NAME TIMES PATTERN
	local count
	count=$(grep -cE -- "$3" "$work/out")
	if [ "$count" -eq "$2" ]; then
		say ok "$1: $2 of $3"
	else
		say FAIL "$1: $count of $3, not $2"
	fi
}

events() { # NAME
	in_background "$1"
	port_and_cq "$1" 1
	interrupt
	expect "$1" "^$pci: gone$"
	expect "$1" "$pci: closed: .*, DMA maps left 0, violations 0$"
	ends_with 0 "$1, ended by SIGINT"

	in_background "$1"
	port_and_cq "$1" 1
	control overrun 0 "$(number_of queue)"
	port_and_cq "$1" 2
	interrupt
	expect "$1" "^$pci: event queue overrun$"
	expect "$1" "$pci: closed: .*, DMA maps left 0, violations 1$" # the overrun
	ends_with 0 "$1, whose queue overran"

	echo '0ms fail 0 400 3' >"$work/faults" # CREATE_CQ
	run "$1" $pci
	expect "$1" "^$pci: Remote I/O error$"
	expect "$1" "$pci: left open: .*, violations 0$"
	ends_with 1 "$1, without a CQ"
}

ran=0
for source in examples/*.c; do
	name=$(basename "$source" .c)
	if [ ! -x "$build/examples/$name" ]; then
		echo "     $name is not built"
		continue
	fi
	case $name in
	uv-monitor | libev-monitor)
		dies "$name"
		cannot_open "$name"
		warned "$name"
		interrupted "$name" ;;
	uv-events)
		dies "$name"
		cannot_open "$name"
		events "$name" ;;
	byo-*)
		dies "$name"
		cannot_open "$name"
		lines=$(wc -l <"$source")
		[ "$lines" -lt 60 ] || say FAIL "$name: $lines lines" ;;
	*) # another test's
		continue ;;
	esac
	ran=$((ran + 1))
done
[ $ran -gt 0 ] || { echo 'no example was built'; exit 77; }
exit $failed
