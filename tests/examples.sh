#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Each example under a fault script: it tells the fault in words and ends by itself, with the device
# closed and no rule of the hardware broken. The monitors end on SIGINT too.
# sim: none; timeout=120
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

interrupted() { # NAME
	local child i
	# shellcheck disable=SC2016 # for the inner shell
	"$build/bin/mlx5vfio-sim" --report -- sh -c 'echo $$ >"$0"; exec stdbuf -oL "$@"' "$work/pid" \
		"$build/examples/$1" $pci >"$work/out" 2>&1 &
	child=$!
	for ((i = 0; i < 200; i++)); do
		grep -q 'goes on' "$work/out" && break
		sleep 0.1
	done
	kill -INT "$(cat "$work/pid")"
	wait $child
	status=$?
	expect "$1" "^$pci: the program goes on"
	expect "$1" "^$pci: closed$"
	expect "$1" "$pci: closed: .*, violations 0$"
	ends_with 0 "$1, ended by SIGINT"
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
