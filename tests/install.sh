#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds and installs into an empty tree, builds a consumer in C and in C++, shared and static, from that
# tree and pkg-config alone, runs it under the installed simulator, and uninstalls.
# sim: none; timeout=300 seconds=14
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

# A program that refuses NULL, opens a device, attaches it, closes it, and runs its loop to the end.
consumer() { # LOOP
	local header attach create run destroy
	case $1 in
	uv)
		header=uv.h create='uv_loop_t loop; if (uv_loop_init(&loop)) return 1;'
		attach='mlx5vfio_uv_attach(&loop, ' run='uv_run(&loop, UV_RUN_DEFAULT);'
		destroy='uv_loop_close(&loop)' ;;
	libevent)
		header=event2/event.h create='struct event_base *loop = event_base_new(); if (!loop) return 1;'
		attach='mlx5vfio_libevent_attach(loop, ' run='event_base_dispatch(loop);'
		destroy='(event_base_free(loop), 0)' ;;
	libev)
		header=ev.h create='struct ev_loop *loop = ev_loop_new(0); if (!loop) return 1;'
		attach='mlx5vfio_libev_attach(loop, ' run='ev_run(loop, 0);'
		destroy='(ev_loop_destroy(loop), 0)' ;;
	esac
	cat <<-END
		#include <errno.h>
		#include <stdio.h>
		#include <string.h>
		#include <$header>
		#include <mlx5vfio/$1.h>
		static int closed, detached;
		static void on_closed(int error, void *arg) { (void)arg; closed = error ? -1 : 1; }
		static void on_detached(void *arg) { (void)arg; detached++; }
		int main(void)
		{
			struct mlx5vfio_handlers handlers;
			struct mlx5vfio *dev;
			char why[256];
			$create
			memset(&handlers, 0, sizeof(handlers));
			handlers.closed = on_closed;
			handlers.detached = on_detached;
			if (${attach}NULL) || errno != EINVAL || strcmp(mlx5vfio_version(), VERSION) != 0)
				return 2;
			dev = ${attach}mlx5vfio_open("0000:b0:00.0", 0, why, sizeof(why)));
			if (!dev || !mlx5vfio_guarded(dev))
				return 3;
			mlx5vfio_set_handlers(dev, &handlers, NULL);
			if (mlx5vfio_close(dev))
				return 4;
			$run
			printf("mlx5vfio %s on $1: closed %d, detached %d\\n", mlx5vfio_version(), closed, detached);
			return $destroy || closed != 1 || detached != 1;
		}
	END
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
[ $tried -eq 12 ] || { echo "FAIL $tried consumers instead of 12: three loops, C and C++, shared and static"; status=1; }

make_here uninstall WITH_UV=0 # what cannot be built today may have been installed yesterday
left=$(find "$root" ! -type d; find "$root" -type d -name 'mlx5vfio*')
if [ -n "$left" ]; then
	echo "FAIL left after make uninstall: $left"
	status=1
fi
exit $status
