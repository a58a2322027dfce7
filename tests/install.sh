#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds and installs into an empty tree, builds a consumer in C and in C++, shared and static, from that
# tree and pkg-config alone, runs it under the installed simulator, and uninstalls.
# sim: none; timeout=300
set -eu
cd "$(dirname "$0")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
root=$tree/root
# A build of its own: the prefix is compiled in, and other tests use the common one.
make_here() {
	make --no-print-directory -j2 BUILD="$tree/build" prefix=/usr DESTDIR="$root" "$@"
}

make_here install
(cd "$root" && find . ! -type d) | sort >"$tree/list"
echo "installed: $(wc -l <"$tree/list") files"
cat "$tree/list"

export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
# /usr is no system directory while it lies in the tree
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
export LD_LIBRARY_PATH=$root/usr/lib

consumer() { # LOOP: a program that sets up the loop, fails to attach NULL, and tells the version
	case $1 in
	uv) cat <<-'END' ;;
		#include <errno.h>
		#include <stdio.h>
		#include <string.h>
		#include <uv.h>
		#include <mlx5vfio/uv.h>
		int main(void)
		{
			uv_loop_t loop;
			if (uv_loop_init(&loop) || mlx5vfio_uv_attach(&loop, NULL) || errno != EINVAL)
				return 1;
			uv_run(&loop, UV_RUN_DEFAULT);
			if (uv_loop_close(&loop) || strcmp(mlx5vfio_version(), VERSION) != 0)
				return 2;
			printf("mlx5vfio %s on libuv\n", mlx5vfio_version());
			return 0;
		}
	END
	libevent) cat <<-'END' ;;
		#include <errno.h>
		#include <stdio.h>
		#include <string.h>
		#include <event2/event.h>
		#include <mlx5vfio/libevent.h>
		int main(void)
		{
			struct event_base *base = event_base_new();
			if (!base || mlx5vfio_libevent_attach(base, NULL) || errno != EINVAL)
				return 1;
			event_base_free(base);
			printf("mlx5vfio %s on libevent\n", mlx5vfio_version());
			return strcmp(mlx5vfio_version(), VERSION) != 0;
		}
	END
	libev) cat <<-'END' ;;
		#include <errno.h>
		#include <stdio.h>
		#include <string.h>
		#include <ev.h>
		#include <mlx5vfio/libev.h>
		int main(void)
		{
			struct ev_loop *loop = ev_loop_new(0);
			if (!loop || mlx5vfio_libev_attach(loop, NULL) || errno != EINVAL)
				return 1;
			ev_loop_destroy(loop);
			printf("mlx5vfio %s on libev\n", mlx5vfio_version());
			return strcmp(mlx5vfio_version(), VERSION) != 0;
		}
	END
	esac
}

status=0
tried=0
for pc in "$root"/usr/lib/pkgconfig/mlx5vfio-*.pc; do
	loop=$(basename "$pc" .pc)
	loop=${loop#mlx5vfio-}
	package=mlx5vfio-$loop
	consumer "$loop" >"$tree/consumer.c"
	cp "$tree/consumer.c" "$tree/consumer.cc"
	define="-DVERSION=\"$(pkg-config --modversion "$package")\""
	read -ra cflags <<<"$(pkg-config --cflags "$package")"
	read -ra shared <<<"$(pkg-config --libs "$package")"
	# ours from the .a, the rest as the linker likes
	read -ra static <<<"$(pkg-config --static --libs "$package" |
		sed 's/-l\(mlx5vfio[-a-z]*\)/-l:lib\1.a/g')"
	for compiler in gcc g++; do
		source=$tree/consumer.c
		[ $compiler = gcc ] || source=$tree/consumer.cc
		for how in shared static; do
			libs=("${shared[@]}")
			[ $how = shared ] || libs=("${static[@]}")
			tried=$((tried + 1))
			if $compiler -Wall -Wextra -Werror "$define" "${cflags[@]}" -o "$tree/consumer" "$source" "${libs[@]}" &&
				"$root/usr/bin/mlx5vfio-sim" -- "$tree/consumer"; then
				ours=$(ldd "$tree/consumer" | grep -c libmlx5vfio || true)
				if [ $how = static ] && [ "$ours" -ne 0 ]; then
					echo "FAIL $package $compiler static: uses the shared library"
					status=1
				else
					echo "ok   $package $compiler $how"
				fi
			else
				echo "FAIL $package $compiler $how: ${cflags[*]} ${libs[*]}"
				status=1
			fi
		done
	done
done
[ $tried -gt 0 ] || { echo 'FAIL no adapter was installed'; status=1; }

make_here uninstall
left=$(find "$root" ! -type d; find "$root" -type d -name 'mlx5vfio*')
if [ -n "$left" ]; then
	echo "FAIL left after make uninstall: $left"
	status=1
fi
exit $status
