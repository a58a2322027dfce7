#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Each public header compiles alone, as C11 and as C++17, with every compiler that is here.
set -eu
cd "$(dirname "$0")/.."

warn='-Wall -Wextra -Wpedantic -Wshadow -Werror'
status=0
for compiler in gcc clang g++ clang++; do
	if ! command -v $compiler >/dev/null; then
		echo "$compiler: not here"
		continue
	fi
	case $compiler in
	*++) language='-x c++ -std=c++17' ;;
	*) language='-x c -std=c11 -Wstrict-prototypes' ;;
	esac
	for header in include/mlx5vfio/*.h sim/mlx5vfio_sim.h; do
		# shellcheck disable=SC2086 # words
		if printf '#include <%s>\n#include <%s>\n' "${header#*/}" "${header#*/}" |
			$compiler $language $warn -Iinclude -Isim -fsyntax-only -; then
			echo "ok   $compiler $header"
		else
			echo "FAIL $compiler $header"
			status=1
		fi
	done
done
exit $status
