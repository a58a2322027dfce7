#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The conformance table: scenarios down, loops across. Every cell says "ok" or has a reason below.
# sim: none; show last timeout=400
#
# Takes what the plain runs of test_conformance_* have left in the logs; a program that has not run
# is run here.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
LOGS=$BUILD/test-logs
export CK_FORK=no

tables=$(mktemp -d) || exit 1
trap 'rm -rf "$tables"' EXIT

loops=()
for loop in uv:libuv libevent:libevent libev:libev ops:ops poll:poll; do
	program=$BUILD/tests/test_conformance_${loop%%:*}
	name=${loop#*:}
	if [ ! -x "$program" ]; then
		echo "no column for $name: its test program was not built"
		continue
	fi
	loops+=("$name")
	if [ -s "$LOGS/conformance-$name" ]; then
		cp "$LOGS/conformance-$name" "$tables/$name"
	else
		CONFORMANCE_TABLE=$tables/$name "$BUILD/bin/mlx5vfio-sim" --devices 4 -- "$program" \
			>"$tables/log" 2>&1 || tail -n 5 "$tables/log"
		touch "$tables/$name"
	fi
done
if [ ${#loops[@]} -eq 0 ]; then
	echo 'no loop has a conformance program'
	exit 1
fi

cd "$tables" || exit 1
awk -F '\t' -v loops="${loops[*]}" '
function note(text,    n)
{
	for (n = 1; n <= notes; n++)
		if (said[n] == text)
			return n
	said[++notes] = text
	return notes
}
BEGIN { count = split(loops, column, " ") }
{
	if (!($1 in known)) {
		known[$1] = 1
		name[++rows] = $1
	}
}
$2 != "planned" {
	cell[$1, FILENAME] = $2 == "ok" ? "ok" : "[" note("not offered by " FILENAME ": " $3) "]"
}
END {
	printf "%-34s", "scenario"
	for (c = 1; c <= count; c++)
		printf " %-9s", column[c]
	print ""
	for (r = 1; r <= rows; r++) {
		printf "%-34s", name[r]
		for (c = 1; c <= count; c++) {
			text = cell[name[r], column[c]]
			missing += text == ""
			printf " %-9s", text == "" ? "MISSING" : text
		}
		print ""
	}
	for (n = 1; n <= notes; n++)
		printf "[%d] %s\n", n, said[n]
	printf "%d scenarios, %d loops, %d cells missing\n", rows, count, missing
	exit missing || !rows
}' "${loops[@]}"
