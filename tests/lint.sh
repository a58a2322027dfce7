#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Format, clang-tidy, cppcheck and shellcheck over all our sources (clang-tidy over all with LINT_ALL=1,
# as `make lint` has it). A tool that is not here is named.
# sim: none; timeout=300 heavy seconds=18
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL

build=${BUILD:-build}
status=0

step() { # NAME COMMAND…
	local name=$1 start=$SECONDS
	shift
	if "$@" >"$build/lint.log" 2>&1; then
		echo "ok   $name, $((SECONDS - start)) s"
	else
		cat "$build/lint.log"
		echo "FAIL $name"
		status=1
	fi
}

here() {
	command -v "$1" >/dev/null || { echo "     $1 is not here"; return 1; }
}

# shellcheck disable=SC2317 # called by step
tidy() { # the complaints with their line, not the analyzer's way there
	printf '%s\n' "$@" | xargs -P 2 -n 1 clang-tidy -p "$build" --quiet 2>/dev/null |
		grep -A 2 --no-group-separator -E ' (error|warning): '
	[ "${PIPESTATUS[1]}" -eq 0 ]
}

dirs=()
for dir in include core adapters sim tools tests examples bench; do
	[ -d "$dir" ] && dirs+=("$dir")
done
mapfile -t formatted < <(find "${dirs[@]}" -name '*.[ch]' | sort)
make -s --no-print-directory BUILD="$build" compile_commands || exit 1
mapfile -t compiled < <(grep -o '"file":"[^"]*"' "$build/compile_commands.json" | cut -d'"' -f4)
mapfile -t scripts < <(grep -lE '^#!/bin/(ba)?sh' .ci/run tests/* tools/* examples/* bench/* 2>/dev/null)

here clang-format && step "clang-format, ${#formatted[@]} files" clang-format --dry-run -Werror "${formatted[@]}"
here shellcheck && step "shellcheck, ${#scripts[@]} scripts" shellcheck "${scripts[@]}"
if [ ${#compiled[@]} -gt 0 ]; then
	here cppcheck && step "cppcheck, ${#compiled[@]} files" cppcheck -q -j2 --std=c11 --inline-suppr \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		--suppress=unknownMacro:tests/* \
		--error-exitcode=1 --project="$build/compile_commands.json"
	tidied=("${compiled[@]}")
	if [ -z "${LINT_ALL:-}" ]; then # part of make test: what is installed as a library, not minutes of it
		mapfile -t tidied < <(printf '%s\n' "${compiled[@]}" | grep -E '^(core|adapters|tools)/')
	fi
	here clang-tidy && step "clang-tidy, ${#tidied[@]} files" tidy "${tidied[@]}"
fi
rm -f "$build/lint.log"
exit $status
