#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The main job on two simulated devices, then the same without the guard. Run by `make demo`.
set -u
bin=${BUILD:-build}/bin
faults=$(dirname "$0")/demo.faults
devices="0000:b0:00.0 0000:b1:00.0"

run() { # OPTION…: what the demo shows, in one line to copy
	echo "\$ $bin/mlx5vfio-sim --devices 2 --faults $faults --report $bin/mlx5vfio monitor $* $devices"
	# shellcheck disable=SC2086
	"$bin/mlx5vfio-sim" --devices 2 --faults "$faults" --report "$bin/mlx5vfio" monitor "$@" $devices
}

echo "== Two devices in one libuv loop. Firmware of $devices:"
sed -n 's/^\([0-9]\)/   \1/p' "$faults"
run --seconds 3
status=$?
if [ $status -ne 3 ]; then
	echo "demo: expected status 3 (a device died), got $status" >&2
	exit 1
fi

echo
echo "== The same without the guard: libmlx5 finds device 1 dead and aborts the process."
(run --no-guard --seconds 3)
status=$?
if [ $status -ne 134 ]; then
	echo "demo: expected SIGABRT (status 134), got $status" >&2
	exit 1
fi
echo "== killed by SIGABRT, and device 0 with it"
