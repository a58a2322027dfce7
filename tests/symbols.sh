#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Each library exports exactly what its header declares, under one version, and the static ones define
# no global name outside ours.
set -eu
cd "$(dirname "$0")/.."

build=${BUILD:-build}
status=0

fail() {
	echo "FAIL $*"
	status=1
}

declared() { # HEADER: the functions that it declares itself or through core.h
	gcc -E -P -Iinclude "$1" | tr '\n' ' ' | tr ';' '\n' |
		sed -n 's/.*visibility("default").*[ *]\(mlx5vfio_[a-z0-9_]*\)(.*/\1/p' | sort -u
}

for header in include/mlx5vfio/*.h; do
	name=$(basename "$header" .h)
	[ "$name" = eq ] && continue # core has it
	library=mlx5vfio
	[ "$name" = core ] || library=mlx5vfio-$name
	if [ ! -e "$build/lib/lib$library.so" ]; then
		echo "     lib$library is not built"
		continue
	fi
	if [ "$name" = core ]; then
		want=$(declared include/mlx5vfio/eq.h)
	else
		want=$(comm -23 <(declared "$header") <(declared include/mlx5vfio/core.h))
	fi
	exported=$(nm -D --defined-only "$build/lib/lib$library.so" | awk '$2 != "A" { print $3 }')
	have=$(printf '%s\n' "$exported" | sed 's/@.*//' | sort -u)
	if [ "$want" = "$have" ]; then
		echo "ok   lib$library.so: $(printf '%s\n' "$want" | wc -l) functions"
	else
		fail "lib$library.so: < declared only, > exported only"
		diff <(printf '%s\n' "$want") <(printf '%s\n' "$have") || true
	fi
	versions=$(printf '%s\n' "$exported" | sed 's/.*@//' | sort -u)
	[ "$(printf '%s\n' "$versions" | wc -l)" -eq 1 ] || fail "lib$library.so: versions $versions"
	objdump -p "$build/lib/lib$library.so" | grep -q "SONAME  *lib$library.so.0$" ||
		fail "lib$library.so: soname"
	foreign=$(nm -g --defined-only "$build/lib/lib$library.a" | awk 'NF == 3 { print $3 }' |
		grep -v '^mlx5vfio_' || true)
	[ -z "$foreign" ] || fail "lib$library.a: global names that are not ours: $foreign"
done

if [ -e "$build/lib/libmlx5vfio-sim.so" ]; then
	sed -n 's/^int \(mlx5vfio_sim_[a-z_]*\)(.*/\1/p' sim/mlx5vfio_sim.h >"$build/sim-symbols"
	while read -r symbol; do
		nm -D --defined-only "$build/lib/libmlx5vfio-sim.so" | grep -q " [TW] $symbol\(@.*\)*$" ||
			fail "libmlx5vfio-sim.so: no $symbol"
	done <"$build/sim-symbols"
	rm -f "$build/sim-symbols"
fi
exit $status
