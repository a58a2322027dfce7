#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Installs the Debian packages that are missing for the named purposes (build, test, lint), or says
# which they are when it may not. Does nothing, quickly, when all are there.
set -eu

# For a Node addon. A nodejs that is not Debian's brings its headers and npm's node-gyp, and Debian's
# headers cannot be installed beside it.
node_packages() {
	if node=$(command -v node); then
		prefix=$(dirname "$(dirname "$(readlink -f "$node")")")
		if [ -e "$prefix/include/node/node_api.h" ] &&
			{ command -v node-gyp || [ -e "$prefix/lib/node_modules/npm/node_modules/node-gyp" ]; } >/dev/null; then
			return
		fi
	fi
	echo nodejs libnode-dev node-gyp
}

wanted=
for purpose in "${@:-build}"; do
	case $purpose in
	build)
		wanted="$wanted gcc libc6-dev pkg-config libibverbs-dev libuv1-dev libevent-dev libev-dev" ;;
	test)
		# pyverbs: a client of libmlx5 that is not ours; libc6-dbg: valgrind needs it
		wanted="$wanted check g++ clang valgrind libc6-dbg python3 python3-pyverbs man-db mandoc libclang-rt-14-dev curl $(node_packages)" ;;
	lint)
		wanted="$wanted clang clang-format clang-tidy cppcheck shellcheck" ;;
	*)
		echo "usage: $0 [build] [test] [lint]" >&2
		exit 2 ;;
	esac
done

if ! command -v dpkg-query >/dev/null; then
	echo "not a Debian system; this needs what Debian calls:$wanted" >&2
	exit 0
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
missing=
for package in $wanted; do
	case " $missing " in *" $package "*) continue ;; esac
	printf '%s\n' "$installed" | grep -qxF "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "missing packages; as root: apt-get install --no-install-recommends$missing" >&2
	exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
