#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# After `make coverage` has run the tests: lines and branches executed, a line per file.
set -eu
cd "$(dirname "$0")/.."

build=${BUILD:-build}/cov
printf '%-40s %8s %8s %9s\n' file lines covered branches
find "$build/obj/core" "$build/obj/adapters" -name '*.gcda' | sort | while read -r data; do
	gcov -b -n "$data" 2>/dev/null
done | awk '
	/^File / {
		name = $2
		gsub("\047", "", name)
		ours = name ~ /^(core|adapters)\/.*\.c$/
	}
	ours && /^Lines executed/ {
		split($0, f, /[:% ]+/)
		percent = f[3]
		lines = f[5]
	}
	ours && /^(Branches executed|No branches)/ {
		split($0, f, /[:% ]+/)
		printf "%-40s %8d %7.1f%% %9s\n", name, lines, percent, /^No/ ? "-" : sprintf("%.1f%%", f[3])
		all += lines
		hit += lines * percent / 100
		ours = 0
	}
	END {
		if (!all) {
			print "nothing was executed"
			exit 1
		}
		printf "%-40s %8d %7.1f%%\n", "all", all, hit * 100 / all
	}'
