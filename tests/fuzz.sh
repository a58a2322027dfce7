#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Fuzzes what parses: each tests/fuzz/fuzz_NAME.c for FUZZ_SECONDS (8), beginning with what is in
# tests/fuzz/corpus/NAME. What is found lies in BUILD/fuzz. FUZZ_KEEP=1 adds to the corpus what
# reached new code.
# sim: none; timeout=300 heavy seconds=24
set -u
cd "$(dirname "$0")/.." || exit 1

seconds=${FUZZ_SECONDS:-8}
out=${BUILD:-build}/fuzz
# shellcheck disable=SC2054 # the commas are clang's
flags=(-std=c11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -I. -Iinclude -Icore -Isim
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)

declare -A sources=(
	[maps]='core/maps.c'
	[ring]='core/ring.c core/strings.c'
	[names]='core/pci.c'
	[control]=$(echo sim/lib/control*.c)
)

mkdir -p "$out" || exit 1
command -v clang >/dev/null || { echo 'clang is not here'; exit 77; }
echo 'int LLVMFuzzerTestOneInput(const char *data, unsigned long size) { return !data && size; }' \
	>"$out/probe.c"
clang -fsanitize=fuzzer "$out/probe.c" -o "$out/probe" 2>/dev/null || {
	echo "clang's fuzzer runtime is not here (Debian: libclang-rt-dev)"
	exit 77
}

fuzz() { # NAME: builds and runs one; its last figures and what it found are printed
	local name=$1 corpus=$out/corpus/$1 log=$out/$1.log status
	# shellcheck disable=SC2086 # a list of files
	clang "${flags[@]}" -DMLX5VFIO_VERSION='"fuzz"' -o "$out/fuzz_$name" \
		"tests/fuzz/fuzz_$name.c" ${sources[$name]} || return 1
	mkdir -p "$corpus"
	timeout -k 5 $((seconds + 60)) "$out/fuzz_$name" -max_total_time="$seconds" -timeout=10 \
		-max_len=4096 -print_final_stats=1 -artifact_prefix="$out/$name-" \
		"$corpus" "tests/fuzz/corpus/$name" >"$log" 2>&1
	status=$?
	if [ $status -ne 0 ]; then
		grep -v "^#" "$log" | head -n 30
		echo "FAIL $name"
		return 1
	fi
	echo "ok   $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs," \
		"$(sed -n 's/.*cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1) edges"
	if [ -n "${FUZZ_KEEP:-}" ]; then
		"$out/fuzz_$name" -merge=1 "tests/fuzz/corpus/$name" "$corpus" >/dev/null 2>&1
	fi
}

status=0
for source in tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	while [ "$(jobs -rp | wc -l)" -ge 2 ]; do
		wait -n || status=1
	done
	fuzz "${name#fuzz_}" &
done
while [ "$(jobs -p | wc -l)" -gt 0 ]; do
	wait -n
	case $? in 0) ;; 127) break ;; *) status=1 ;; esac
done
exit $status
