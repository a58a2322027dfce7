#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Adapters stay thin: lines of code, nothing asked of libmlx5, no clock, no state of the device. Each is
# built with only its own loop library there.
# sim: none; show timeout=300 heavy seconds=25
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL

most=150
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAIL $*"
	status=1
}

for source in adapters/*/*.c; do
	lines=$("${CC:-gcc}" -fpreprocessed -dD -E -P "$source" 2>/dev/null | grep -c .)
	[ "$lines" -gt 0 ] || fail "$source cannot be counted"
	echo "$source: $lines lines of code"
	[ "$lines" -le $most ] || fail "$source has more than $most lines of code"
	if grep -nE 'mlx5dv_|ibv_[a-z]+\(|clock_gettime|gettimeofday|mlx5vfio_(get|set|detach|close|error)' "$source"; then
		fail "$source decides or asks what is the core's"
	fi
done

# The other loops' headers are shadowed by ones that do not compile, as if they were not installed.
only() { # LOOP HEADER…
	local loop=$1 shadow=$work/shadow-$1
	shift
	mkdir -p "$shadow/event2"
	for header; do
		echo '#error "not installed here"' >"$shadow/$header"
	done
	if make --no-print-directory -s -j2 BUILD="$work/$loop" prefix=/usr DESTDIR="$work/root-$loop" \
		CFLAGS=-O0 CPPFLAGS="-I$shadow" install >"$work/log" 2>&1; then
		libraries=$(cd "$work/root-$loop/usr/lib" && echo libmlx5vfio-*.so)
		[ "$libraries" = "libmlx5vfio-$loop.so" ] || fail "only $loop: built $libraries"
		grep -iE 'skip|left out|absent' "$work/log" | sed 's/^/     /'
		echo "ok   $loop with only its own library"
	else
		cat "$work/log"
		fail "$loop cannot be built alone"
	fi
}
only uv event2/event.h ev.h
only libevent uv.h ev.h
only libev uv.h event2/event.h
exit $status
