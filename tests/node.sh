#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# examples/node-addon, copied out of the tree, built with node-gyp against the headers of the node that
# is here, and its own tests. Nothing is downloaded.
# sim: none; heavy timeout=300 seconds=50
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL

build=$(realpath "${BUILD:-build}")
addon=$build/node-addon
# One after the other: the tests of a file run in a simulator of their own.
tests=(device.test.js fault.test.js life.test.js workers.test.js memory.test.js)

not_here() {
	echo "$1"
	exit 77
}

for tool in node python3 make g++; do
	command -v "$tool" >/dev/null || not_here "$tool is not here"
done
[ -x "$build/bin/mlx5vfio-sim" ] || not_here 'mlx5vfio-sim is not built'
node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' || not_here "node $(node --version) is older than 18"

# Debian's nodejs and those of others keep their headers in the same place, below the prefix.
prefix=$(node -p 'path.resolve(fs.realpathSync(process.execPath), "../..")')
for header in node_api.h common.gypi; do
	[ -e "$prefix/include/node/$header" ] || not_here "the headers of node are not in $prefix/include/node"
done
node_gyp=(node-gyp)
if ! command -v node-gyp >/dev/null; then
	bundled=$prefix/lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js
	[ -e "$bundled" ] || not_here 'node-gyp is not here'
	node_gyp=(node "$bundled")
fi
# Debian's node-gyp is on Debian's python, which may not be the first here.
[ ! -x /usr/bin/python3 ] || export npm_config_python=/usr/bin/python3

rm -rf "$addon"
mkdir -p "$addon"
cp -R examples/node-addon/. "$addon"
rm -rf "$addon/build"
cd "$addon" || exit 1
# A relative path: gyp puts objects where their sources are.
if ! CFLAGS='-Werror -Wshadow -Wconversion -Wstrict-prototypes' "${node_gyp[@]}" rebuild --loglevel=error \
	--jobs=2 --nodedir="$prefix" -- "-Dmlx5vfio_dir=$(realpath --relative-to=. "$OLDPWD")" >build.log 2>&1; then
	cat build.log
	echo 'FAIL it does not build'
	exit 1
fi
node -p "'node ' + process.version + ', libuv ' + process.versions.uv"
if readelf -d build/Release/mlx5vfio.node | grep -E 'NEEDED.*(libuv|libmlx5vfio)'; then
	echo 'FAIL it brings a libuv or a libmlx5vfio'
	exit 1
fi

PATH=$build/bin:$PATH exec node --test "${tests[@]/#/test/}"
