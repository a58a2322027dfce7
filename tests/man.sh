#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The manual: every page is clean, every exported function has one with the header's prototype, and no
# page names what no header declares or no other page. What is said twice is the same: structures,
# examples, the simulator's commands, the words for faults.
# sim: none; timeout=120
set -u
cd "$(dirname "$0")/.." || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
headers=(include/mlx5vfio/*.h sim/mlx5vfio_sim.h)

fail() {
	echo "FAIL $*"
	failed=$((failed + 1))
}

tools=
for tool in mandoc man; do
	if command -v $tool >/dev/null; then
		tools+=" $tool "
	else
		echo "     $tool is not here"
	fi
done
here() {
	[[ $tools == *" $1 "* ]]
}

# ok TEXT, if nothing has failed since the last one
before=0
ok() {
	[ $failed -ne $before ] || echo "ok   $*"
	before=$failed
}

declared() { # HEADER…: the functions they declare
	cat "$@" | tr '\n' ' ' | grep -oE '\bmlx5vfio_[a-z0-9_]+\(' | tr -d '(' | sort -u
}

# as they will be installed
pages=() links=()
for page in man/*.[1-9]; do
	mkdir -p "$work/man/man${page##*.}"
	cp "$page" "$work/man/man${page##*.}/"
	if grep -q '^\.so ' "$page"; then
		links+=("$page")
	else
		pages+=("$page")
	fi
done
declared "${headers[@]}" >"$work/declared"
gcc -E -P -Iinclude -x c - < <(printf '#include <%s>\n' "${headers[@]#include/}" | grep -v sim/) |
	tr '\n' ' ' | tr ';' '\n' |
	sed -n 's/.*visibility("default").*[ *]\(mlx5vfio_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$work/exported"
[ -s "$work/exported" ] || fail 'no exported function was found'

# ---- every page alone

for page in "${pages[@]}"; do
	if here mandoc; then
		lint=$(mandoc -Tlint -Wwarning "$page" 2>&1) || fail "$page: $lint"
	fi
	if here man; then
		lint=$(man --warnings -l "$page" 2>&1 >/dev/null)
		[ -z "$lint" ] || fail "$page: $lint"
	fi
done
ok "${#pages[@]} pages are clean"

for page in "${links[@]}"; do
	target=$(sed -n 's/^\.so man[1-9]\///p' "$page")
	[ "$(wc -l <"$page")" -eq 2 ] || fail "$page: more than the licence and .so"
	[ -f "man/$target" ] || fail "$page: there is no man/$target"
	name=$(basename "${page%.*}")
	grep -qE "^\.Nm $name( ,)?$" "man/$target" || fail "$page: man/$target is not about it"
done
ok "${#links[@]} links lead to a page that is about them"

# ---- the functions

while read -r name; do
	if [ ! -f "man/$name.3" ]; then
		fail "$name is exported and has no page"
	elif here man && ! man -M "$work/man" -w 3 "$name" >/dev/null 2>&1; then
		fail "man $name finds nothing"
	fi
done <"$work/exported"
ok "$(wc -l <"$work/exported") functions are found by man"

# The synopsis as C: a prototype that is not the header's does not compile.
synopsis() { # PAGE
	awk '
		function quoted(line,   out, word) {	# macro arguments, each in quotes or one word
			while (match(line, /"[^"]*"|[^ "]+/)) {
				word = substr(line, RSTART, RLENGTH)
				gsub(/"/, "", word)
				out = out (out == "" ? "" : ", ") word
				line = substr(line, RSTART + RLENGTH)
			}
			return out
		}
		/^\.Sh/ { on = ($2 == "SYNOPSIS") }
		!on { next }
		/^\.In / { print "#include <" $2 ">" }
		/^\.Ft / { sub(/^\.Ft /, ""); gsub(/"/, ""); type = $0 }
		/^\.Fo / { name = $2; args = "" }
		/^\.Fa / { sub(/^\.Fa /, ""); args = args (args == "" ? "" : ", ") quoted($0) }
		/^\.Fc/ { print type " " name "(" args ");" }
		/^\.Fn / { name = $2; sub(/^\.Fn [^ ]+ ?/, ""); print type " " name "(" quoted($0) ");" }
	' "$1"
}
for page in "${pages[@]}"; do
	case $page in *.3) ;; *) continue ;; esac
	synopsis "$page" >"$work/synopsis.c"
	gcc -Iinclude -Wall -Werror -fsyntax-only "$work/synopsis.c" 2>"$work/err" ||
		fail "$page: its synopsis is not what the header says: $(cat "$work/err")"
	while read -r name; do
		grep -q "[ *]$name(" "$work/synopsis.c" || [ "man/$name.3" = "$page" ] ||
			fail "$page: $name is in its name and not in its synopsis"
	done < <(sed -n 's/^\.Nm \(mlx5vfio_[a-z0-9_]*\).*/\1/p' "$page")
	sed -n 's/^.* \**\(mlx5vfio_[a-z0-9_]*\)(.*/\1/p' "$work/synopsis.c" >>"$work/documented"
done
while read -r name; do
	fail "$name is exported and in no synopsis"
done < <(comm -23 "$work/exported" <(sort -u "$work/documented"))
ok 'every synopsis compiles against the headers, and none is missing'

# ---- names

while read -r name section; do
	[ -f "man/$name.$section" ] || fail "$name($section) is referred to and does not exist"
done < <(sed -nE 's/^\.Xr (mlx5vfio[^ ]*) ([1-9]).*/\1 \2/p' "${pages[@]}" | sort -u)
ok 'every page that is referred to exists'

foreign=()
for file in /usr/include/infiniband /usr/include/uv.h /usr/include/uv /usr/include/ev.h \
	/usr/include/event2; do
	[ -e "$file" ] && foreign+=("$file")
done
while read -r name; do
	case $name in
	mlx5vfio_*)
		grep -qx "$name" "$work/declared" || fail "function $name is in a page and in no header" ;;
	uv_* | ev_* | event_* | ibv_* | mlx5dv_*)
		[ ${#foreign[@]} -eq 0 ] || grep -rqw "$name" "${foreign[@]}" ||
			fail "function $name is in a page and in no header" ;;
	esac
done < <(sed -nE 's/^\.(Fn|Fo|Pq Fn) ([a-z0-9_]+).*/\2/p' "${pages[@]}" | sort -u)
while read -r name; do
	grep -qw "$name" "${headers[@]}" || fail "$name is in a page and in no header"
done < <(cat "${pages[@]}" | grep -oE '\b(mlx5vfio|MLX5VFIO)_[A-Za-z0-9_]+' |
	grep -vE '^MLX5VFIO_(SIM_|[A-Z_]+ 3$)' | sort -u | while read -r name; do
	# a page's title is its name in capitals
	[ -f "man/${name,,}.3" ] || [ -f "sim/$name.h" ] || echo "$name"
done)
ok 'every name that a page uses is declared'

# ---- what is said twice

plain() { # without comments, blanks and line ends
	gcc -fpreprocessed -dD -E -P -x c - 2>/dev/null | tr -d ' \t\n'
}
literal() { # PAGE: its displays as they are printed
	sed -n '/^\.Bd -literal/,/^\.Ed/{/^\.[BE]d/d;s/^\\&//;s/\\e/\\/g;p}' "$1"
}
while read -r name; do
	want=$(cat "${headers[@]}" | sed -n "/^struct $name {/,/^};/p" | plain)
	have=$(for page in "${pages[@]}"; do literal "$page"; done |
		sed -n "/^struct $name {/,/^};/p" | plain)
	[[ $want = "$have" ]] || fail "struct $name is not in a page as its header has it"
done < <(sed -n 's/^struct \(mlx5vfio[a-z_]*\) {.*/\1/p' include/mlx5vfio/*.h)
ok 'structures are those of the headers'

for source in examples/byo-epoll.h examples/byo-epoll.c; do
	text=$(tail -n +2 "$source")
	[[ $(literal man/mlx5vfio_attach.3) == *"$text"* ]] || fail "mlx5vfio_attach(3) does not show $source"
done
ok 'the example is the one in examples/'

# shellcheck disable=SC2016 # Markdown
while read -r command; do
	grep -qE "^\.It Cm (.* , Cm )?$command " man/mlx5vfio-sim.1 || fail "mlx5vfio-sim(1) lacks $command"
done < <(sed -n '/^| command/,/^$/p' sim/README.md | grep -oE '^\| `[a-z-]+|/ `[a-z-]+' | grep -oE '[a-z-]+$' | sort -u)
while read -r option; do
	grep -qE "^\.It Fl ${option#-}" man/mlx5vfio-sim.1 || fail "mlx5vfio-sim(1) lacks $option"
done < <(grep -oE '^\| `--[a-z-]+' sim/README.md | grep -oE -- '--[a-z-]+')
ok 'the simulator: commands and options of sim/README.md'

while read -r words; do
	grep -qF "$words" man/mlx5vfio_health.3 man/mlx5vfio_eq_open.3 ||
		fail "no page has the words \"$words\""
done < <(sed -n 's/.*return "\(.*\)";/\1/p' core/strings.c | grep -vE '^(healthy|unknown .*)$')
ok 'words for faults, syndromes and events'

[ $failed -eq 0 ]
