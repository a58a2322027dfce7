#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What README.md shows is true: every command in it is run, the program and the pieces of C in it are
# built against an installed tree and run under the simulator, its links and tables lead somewhere. A
# command that this test does not know is a failure.
# sim: none; timeout=180 light seconds=20
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL

export BUILD=${BUILD:-build}
pci=0000:b0:00.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
failed=0
: >"$work/out"

if [ ! -e "$BUILD/lib/libmlx5vfio-uv.so" ]; then
	echo 'the libuv adapter is left out of this build, and README.md uses it'
	exit 77
fi

say() { # ok|FAIL TEXT
	printf '%-4s %s\n' "$1" "$2"
	[ "$1" = ok ] && return
	failed=1
	tail -n 40 "$work/out" | sed 's/^/     | /'
}

try() { # STATUS PATTERN COMMAND…: its output has a line with PATTERN, if there is one
	local want=$1 pattern=$2 status
	shift 2
	timeout -k 5 100 "$@" >"$work/out" 2>&1 </dev/null
	status=$?
	if [ $status -ne "$want" ]; then
		say FAIL "$*: exit status $status, not $want"
	elif [ -n "$pattern" ] && ! grep -qE -- "$pattern" "$work/out"; then
		say FAIL "$*: no line with $pattern"
	else
		say ok "$* ${pattern:+: $(grep -m 1 -oE -- "$pattern" "$work/out")}"
	fi
}

# ---- what there is

# The first block between ```c and ```
# shellcheck disable=SC2016 # Markdown
sed -n '/^```c$/,/^```$/{/^```/d;p}' README.md >"$work/hello.c"
# Indented blocks; commands start with make or $
sed -n 's/^    //p' README.md >"$work/indented"
# shellcheck disable=SC2016 # Markdown
{
	sed -nE 's/^\$ +//p; s/^(make .*)/\1/p' "$work/indented" | sed 's/ *#.*//'
	grep -oE '`(make|cc|build/bin/[a-z0-9-]+) [^`]+`' README.md | tr -d '`'
} | sort -u >"$work/commands"
grep -vE '^(\$|make) ?' "$work/indented" >"$work/snippets"

# ---- commands

# An installation like the reader's, but not in his system; the prefix is the one that was compiled in.
install_tree() {
	try 0 "$root/usr/local/lib/libmlx5vfio.so" make install DESTDIR="$root" prefix=/usr/local
	export PKG_CONFIG_PATH=$root/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
	export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
}

# The line is run as it stands, by a shell in the directory of hello.c. cc takes every warning.
build_program() { # COMMAND
	mkdir -p "$work/bin"
	printf '#!/bin/sh\nexec gcc -Wall -Wextra -Werror "$@"\n' >"$work/bin/cc"
	chmod +x "$work/bin/cc"
	(cd "$work" && PATH=$work/bin:$PATH sh -ec "$1") >"$work/out" 2>&1
	if [ -x "$work/a.out" ]; then
		say ok "$1"
	else
		say FAIL "$1"
	fi
}

run_program() {
	local program=(env "LD_LIBRARY_PATH=$root/usr/local/lib" "$work/a.out")
	local sim=$BUILD/bin/mlx5vfio-sim

	[ -x "$work/a.out" ] || return
	echo '500ms fatal 0 0x1' >"$work/faults"
	try 0 "^$pci: fatal firmware error$" "$sim" --faults "$work/faults" "${program[@]}" $pci
	try 0 'closed: .*violations 0$' "$sim" --report --faults "$work/faults" "${program[@]}" $pci
	try 1 'there is no such PCI device' "$sim" "${program[@]}" 0000:de:00.0
	try 1 'no PCI name given' "$sim" "${program[@]}"
}

command_of() { # what a command stands for, in this build
	local text=${1//PCI…/$pci}
	printf '%s' "${text//build\/bin/$BUILD\/bin}"
}

run_command() { # COMMAND
	local words
	read -ra words <<<"$(command_of "$1")"
	case $1 in
	'make test' | 'make install'* | 'make uninstall' | 'cc '*)
		;; # this test is part of make test; the others come in their order below
	'make demo')
		try 0 'killed by SIGABRT, and device 0 with it' make demo ;;
	'build/bin/mlx5vfio-sim --faults examples/fatal.faults '*)
		try 3 'fault: fatal firmware error' "${words[@]}" ;;
	'build/bin/mlx5vfio monitor'*)
		try 0 "$pci +closed in" "$BUILD/bin/mlx5vfio-sim" "${words[@]}" --seconds 1 ;;
	'build/bin/mlx5vfio check'*)
		try 0 "^$pci: can be opened$" "$BUILD/bin/mlx5vfio-sim" "${words[@]}" ;;
	*)
		say FAIL "a command that tests/readme.sh does not know: $1" ;;
	esac
}

shows() { # PATTERN: the command that README.md has for it
	grep -m 1 -E "$1" "$work/commands" || say FAIL "README.md has no command $1"
}

[ -s "$work/hello.c" ] || say FAIL 'README.md has no C program'
while read -r line <&3; do
	run_command "$line"
done 3<"$work/commands"
shows '^make install' >/dev/null
shows '^make uninstall' >/dev/null
install_tree
build_program "$(shows '^cc ')"
run_program

# ---- pieces of C, tables, links

section() { # TITLE: its pieces of C
	sed -n "/^## $1\$/,/^## /s/^    //p" README.md | grep -vE '^(\$|make) ?'
}

function_in() { # TITLE
	section "$1" | sed -n '/^static/,/^}/p'
}

# A program around them: it hears of its port through as many event queues as it is told to open, while
# it polls as the piece does. poll() itself looks whether what it is given has room, and ends the
# program when it has not.
program_of_pieces() {
	cat <<-'END'
		#include <mlx5vfio/eq.h>
		#include <stdio.h>
		#include <stdlib.h>

		static bool gone;

		static void on_detached(void *arg)
		{
			(void)arg;
			gone = true;
		}

	END
	function_in 'Event queues'
	cat <<-'END'
		static struct mlx5vfio_eq *open_queue(struct mlx5vfio *dev, char *pci_name)
		{
	END
	section 'Event queues' | sed '/^static/,/^}/d'
	cat <<-'END'
			return eq;
		}

		static int turn(struct mlx5vfio *dev)
		{
	END
	section 'Which loop'
	cat <<-'END'
			return 0;
		}

		int main(int argc, char **argv)
		{
			const struct mlx5vfio_handlers handlers = { .detached = on_detached };
			int queues = argc == 3 ? atoi(argv[2]) : 0;
			struct mlx5vfio_stats stats = { 0 };
			struct mlx5vfio *dev;

			dev = mlx5vfio_attach(mlx5vfio_open(argv[1], 0, NULL, 0), NULL, NULL);
			if (!dev)
				return 2;
			mlx5vfio_set_handlers(dev, &handlers, NULL);
			for (int i = 0; i < queues; i++)
				if (!open_queue(dev, argv[1]))
					return 2;
			while (stats.events < (unsigned)queues) {
				if (turn(dev))
					return 3;
				mlx5vfio_get_stats(dev, &stats, sizeof(stats));
			}
			if (mlx5vfio_close(dev))
				return 2;
			while (!gone)
				if (turn(dev))
					return 3;
			return 0;
		}
	END
}

build_pieces() {
	local flags
	read -ra flags <<<"$(pkg-config --cflags --libs mlx5vfio)"
	program_of_pieces >"$work/pieces.c"
	gcc -Wall -Wextra -Werror -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -o "$work/pieces" "$work/pieces.c" \
		"${flags[@]}" >"$work/out" 2>&1
}

run_pieces() { # STATUS QUEUES PATTERN
	try "$1" "$3" env "LD_LIBRARY_PATH=$root/usr/local/lib" "$BUILD/bin/mlx5vfio-sim" --faults "$work/faults" \
		"$work/pieces" $pci "$2"
}

{ section 'Which loop' && section 'Event queues'; } | cmp "$work/snippets" - >"$work/out" 2>&1 ||
	say FAIL 'there is a piece of C that tests/readme.sh does not know'
if build_pieces; then
	say ok "$(wc -l <"$work/snippets") lines of C in pieces compile"
	# again, for a machine on which the queues are not open in time
	printf '%s port 0 down\n' 300ms 1s 3s 10s 30s >"$work/faults"
	run_pieces 0 1 "^$pci: port state change$"
	run_pieces 0 7 "^$pci: port state change$"
	run_pieces 3 8 '' # with the device's own one more than the piece has room for
else
	say FAIL 'a piece of C does not compile'
fi

: >"$work/out"
# shellcheck disable=SC2016 # Markdown
while IFS='|' read -r _ loop header call package _; do
	header=$(tr -d ' `' <<<"$header") package=$(tr -d ' `' <<<"$package")
	name=$(grep -oE 'mlx5vfio_[a-z_]+' <<<"$call")
	if [ ! -f "include/$header" ] || ! grep -q "[ *]$name(" "include/$header"; then
		say FAIL "table of loops,$loop: no $name in $header"
	elif [ -f "$root/usr/local/lib/pkgconfig/$package.pc" ]; then
		say ok "table of loops,$loop: $name in $header, package $package"
	elif [ -f "pkgconfig/$package.pc.in" ]; then
		say ok "table of loops,$loop: $name in $header; $package is left out of this build"
	else
		say FAIL "table of loops,$loop: no package $package"
	fi
done < <(grep -E '^\|.*`mlx5vfio/' README.md)

while read -r file; do
	[ -e "$file" ] || say FAIL "link to $file, which does not exist"
done < <(grep -oE '\]\([^)#]+\)' README.md | tr -d '])(' | grep -v '^https*:')
while read -r name section; do
	[ -f "man/$name.$section" ] || say FAIL "$name($section) does not exist"
done < <(grep -oE '\bmlx5vfio[a-z0-9_-]*\([1-9]\)' README.md | tr '()' '  ')

try 0 '' make uninstall DESTDIR="$root" prefix=/usr/local
left=$(find "$root" ! -type d)
[ -z "$left" ] || say FAIL "left after make uninstall: $left"
exit $failed
