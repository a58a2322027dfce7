#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sim: none; timeout=200 seconds=13
#
# The commands mlx5vfio-sim and mlx5vfio-simctl from outside: exit status, what they refuse, what
# they leave alone, what they leave over.
set -u
cd "$(dirname "$0")/.." || exit 1

build=$(realpath "${BUILD:-build}")
sim=$build/bin/mlx5vfio-sim
ctl=$build/bin/mlx5vfio-simctl
hold=$build/tests/prog_sim_hold
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset MLX5VFIO_SIM_SOCKET
failed=0

fail() {
	echo "FAIL $*"
	failed=1
}

expect() { # STATUS COMMAND…: its output goes to $tmp/out and $tmp/err
	local wanted=$1 status
	shift
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	[ "$status" -eq "$wanted" ] || {
		fail "status $status, not $wanted: $*"
		head -n 3 "$tmp/err"
	}
}

says() { # FILE TEXT
	grep -qF -- "$2" "$tmp/$1" || fail "no \"$2\" in std$1: $(head -n 3 "$tmp/$1")"
}

same() { # NAME COMMAND…: says and ends the same under the simulator as without
	local name=$1 plain status
	shift
	plain=$("$@" 2>&1)
	status=$?
	[ "$plain" = "$("$sim" -- "$@" 2>&1)" ] || fail "$name differs under the simulator"
	expect "$status" "$sim" -- "$@"
}

try_usage() {
	expect 1 "$sim"
	says err 'usage: mlx5vfio-sim'
	expect 0 "$sim" --help
	says out '--faults FILE'
	expect 0 "$sim" --version
	says out mlx5vfio-sim
	expect 1 "$sim" --nonsense true
	expect 1 "$sim" --devices
	for number in 1025 -1 x ''; do
		expect 1 "$sim" --devices "$number" true
		says err '--devices takes a number'
	done
	expect 1 "$sim" --seed x true
	says err '--seed takes a number'
	expect 1 "$sim" --faults "$tmp/absent" true
	says err "$tmp/absent"
	expect 1 "$sim" --dir "$tmp/absent" true
	says err "$tmp/absent"
	expect 1 "$sim" --socket "$tmp/$(printf '%0120d' 0)" true
	says err 'too long'
	expect 0 "$sim" --devices 0 true
	expect 0 "$sim" true --help
}

try_status() {
	for status in 0 1 7 99 255; do
		expect "$status" "$sim" sh -c "exit $status"
	done
	expect 127 "$sim" no-such-program
	expect 127 "$sim" "$tmp/no-such-program"
	: >"$tmp/text"
	expect 126 "$sim" "$tmp/text"
	expect 126 "$sim" "$tmp"
	for signal in TERM:143 ABRT:134 KILL:137 SEGV:139 INT:130; do
		expect "${signal#*:}" "$sim" sh -c "kill -${signal%:*} \$\$"
	done
	expect 134 bash -c '"$@"' - "$sim" sh -c 'kill -ABRT $$'
}

try_signals() { # sent to the launcher they reach the program
	local pid
	mkfifo "$tmp/ready"
	"$sim" sh -c "trap 'exit 42' USR1; trap 'exit 43' HUP; echo >$tmp/ready; while :; do sleep 0.1; done" &
	pid=$!
	read -r _ <"$tmp/ready"
	kill -USR1 "$pid"
	wait "$pid"
	[ $? -eq 42 ] || fail 'USR1 is not passed on'
	"$sim" sh -c "echo >$tmp/ready; exec sleep 60" &
	pid=$!
	read -r _ <"$tmp/ready"
	kill -TERM "$pid"
	wait "$pid" 2>/dev/null
	[ $? -eq 143 ] || fail 'TERM is not passed on'
}

try_set_uid() {
	for mode in u+s g+s; do
		cp /bin/true "$tmp/raised"
		chmod "$mode" "$tmp/raised"
		expect 1 "$sim" "$tmp/raised"
		says err 'set-uid, set-gid'
		rm -f "$tmp/raised"
	done
}

try_unsimulable() { # what the dynamic linker would run without us
	cp /bin/true "$tmp/raised"
	chmod u+s "$tmp/raised"
	printf '#!%s\n' "$tmp/raised" >"$tmp/script"
	chmod +x "$tmp/script"
	expect 1 "$sim" "$tmp/script"
	says err 'set-uid interpreter'
	rm -f "$tmp/raised"
	echo 'int main(void) { return 0; }' >"$tmp/fixed.c"
	gcc -static -o "$tmp/fixed" "$tmp/fixed.c"
	expect 1 "$sim" "$tmp/fixed"
	says err 'statically linked'
	mkdir -p "$tmp/a space:colon/bin" "$tmp/a space:colon/lib"
	cp "$sim" "$tmp/a space:colon/bin/"
	cp "$(dirname "$sim")/../lib/libmlx5vfio-sim.so" "$tmp/a space:colon/lib/"
	expect 0 "$tmp/a space:colon/bin/mlx5vfio-sim" cat /sys/bus/pci/devices/0000:b0:00.0/vendor
}

try_foreign_files() {
	same 'the list of PCI devices' ls /sys/bus/pci/devices
	same 'the list of IOMMU groups' ls /sys/kernel/iommu_groups
	same /etc/hostname cat /etc/hostname
	same 'a file that is not there' cat /dev/vfio-not-ours
	same 'a group that is not there' cat /dev/vfio/9999
	same 'another file in /sys' cat /sys/kernel/mm/transparent_hugepage/enabled
	same 'a path through ..' cat /dev/../etc/hostname
	same 'an empty path' cat ''
	command -v python3 >/dev/null || return 0
	cat >"$tmp/files.py" <<-'EOF'
		import fcntl, os, socket, stat, sys, tempfile, termios
		with tempfile.TemporaryDirectory() as d:
		    a, b = os.path.join(d, "a"), os.path.join(d, "b")
		    with open(a, "w") as f:
		        f.write("text")
		    os.symlink("a", b)
		    assert open(b).read() == "text"
		    assert os.readlink(b) == "a" and os.path.realpath(b) == os.path.realpath(a)
		    assert os.stat(a).st_size == 4 and stat.S_ISLNK(os.lstat(b).st_mode)
		    fd = os.open(a, os.O_RDWR)
		    assert os.readlink("/proc/self/fd/%d" % fd) == os.path.realpath(a)
		    assert os.open("b", os.O_RDONLY, dir_fd=os.open(d, os.O_DIRECTORY)) > fd
		    os.close(fd)
		    try:
		        os.close(fd)
		        sys.exit("closed twice")
		    except OSError:
		        pass
		    r, w = os.pipe()
		    os.write(w, b"12345")
		    n = fcntl.ioctl(r, termios.FIONREAD, b"\0" * 4)
		    assert int.from_bytes(n, sys.byteorder) == 5
		    assert sorted(os.listdir(d)) == ["a", "b"] and os.access(a, os.R_OK)
		for name in "/dev/vfio-not-ours", "/dev/vfiox/10", "/sys/bus/pci/devices/9999:00:00.0":
		    try:
		        open(name)
		        sys.exit(name)
		    except FileNotFoundError:
		        pass
		print(len(os.listdir("/proc/self/task")), "threads")
		print(len(os.listdir("/proc/self/fd")), "fds")
	EOF
	same 'python and files' python3 "$tmp/files.py"
	says out '1 threads'
}

try_left_overs() {
	mkdir "$tmp/dir"
	expect 0 "$sim" --dir "$tmp/dir" "$hold" idle 0
	expect 134 "$sim" --dir "$tmp/dir" sh -c 'kill -ABRT $$'
	expect 0 "$sim" --dir "$tmp/dir" "$hold" leave
	[ -z "$(ls -A "$tmp/dir")" ] || fail "left over: $(ls -A "$tmp/dir")"
}

try_report() {
	expect 0 "$sim" --report --seed 5 "$hold" idle 0
	says err 'mlx5vfio-sim: seed 5'
	grep -qE '^mlx5vfio-sim: 0000:b0:00.0: closed: commands [1-9][0-9]*, eqes [0-9]+, interrupts [0-9]+, pages requested 0, given 0, asked back 0, returned 0, DMA maps left 0, violations 0$' \
		"$tmp/err" || fail "report: $(cat "$tmp/err")"
	expect 0 "$sim" --report "$hold" leave
	says err '0000:b0:00.0: left open: commands'
	expect 0 "$sim" "$hold" idle 0
	[ ! -s "$tmp/err" ] || fail "without --report: $(cat "$tmp/err")"
}

try_fault_scripts() {
	cat >"$tmp/faults" <<-'EOF'
		# a comment, then a blank line

		0ms page-request 0 8
		0ms nonsense 0
		soon fatal 0
		0ms fatal
		0ms
		0ms fail 0 800 6 # fine
		0ms spurious 99
		0ms settle 0 1s
	EOF
	expect 0 "$sim" --faults "$tmp/faults" "$hold" idle 0
	for line in '4: unknown command' '5: a line begins with a time' '6: wrong number of arguments' \
		'7: there is no command' '9: there is no such device' '10: settle'; do
		says err "$tmp/faults:$line"
	done
	grep -qE "faults:(1|2|8):" "$tmp/err" && fail "good lines are refused: $(cat "$tmp/err")"
	printf '50ms fatal 0\n' >"$tmp/faults"
	# the program may be in another directory when the script is read
	expect 134 env -C "$tmp" "$sim" --faults faults sh -c "cd / && sleep 2 | $hold hold"
}

try_control() {
	local socket=$tmp/socket pid
	expect 1 "$ctl"
	says err 'usage: mlx5vfio-simctl'
	expect 0 "$ctl" --help
	expect 1 "$ctl" --socket "$socket" stats 0
	says err "$socket"
	expect 1 env TMPDIR="$tmp" MLX5VFIO_SIM_SOCKET="$tmp/absent" "$ctl" stats 0

	mkfifo "$tmp/in" "$tmp/hold"
	"$sim" --devices 2 --socket "$socket" "$hold" hold <"$tmp/in" >"$tmp/hold" 2>"$tmp/program" &
	pid=$!
	exec 8>"$tmp/in" 9<"$tmp/hold"
	read -r _ <&9
	[ "$(stat -c %a "$socket")" = 600 ] || fail "the socket has mode $(stat -c %a "$socket")"
	expect 0 "$ctl" --socket "$socket" stats 0
	says out 'open=1 opens=1 '
	expect 0 "$ctl" --socket "$socket" stats 1
	says out 'open=0 '
	expect 0 "$ctl" --socket "$socket" page-request 0 8 3 spaced
	expect 0 env MLX5VFIO_SIM_SOCKET="$socket" "$ctl" settle 0 10s
	expect 0 "$ctl" --socket "$socket" stats 0
	says out ' pages_given=24 '
	says out ' violations=0'
	for line in nonsense 'fatal x' 'fatal 7' 'page-request 1 1' 'settle 0'; do
		# shellcheck disable=SC2086 # words
		expect 2 "$ctl" --socket "$socket" $line
		says err 'mlx5vfio-simctl: '
	done
	expect 1 "$ctl" --socket "$socket" "$(printf '%0300d' 0)"
	expect 0 "$ctl" --socket "$socket" fatal 0
	wait "$pid" 2>/dev/null
	[ $? -eq 134 ] || fail 'a fatal fault does not end libmlx5'
	exec 8>&- 9<&-
	[ ! -e "$socket" ] || fail 'the socket is left over'

	# without --socket: the newest one
	mkdir "$tmp/own"
	TMPDIR=$tmp/own "$sim" "$hold" hold <"$tmp/in" >"$tmp/hold" &
	pid=$!
	exec 8>"$tmp/in" 9<"$tmp/hold"
	read -r _ <&9
	expect 0 env TMPDIR="$tmp/own" "$ctl" stats 0
	says out 'open=1 '
	exec 8>&-
	wait "$pid" || fail 'the program does not end with its input'
	exec 9<&-
	[ -z "$(ls -A "$tmp/own")" ] || fail "left over: $(ls -A "$tmp/own")"
}

try_guests() { # valgrind and node
	if command -v valgrind >/dev/null; then
		expect 0 "$sim" valgrind -q --error-exitcode=99 "$hold" idle 0
	fi
	command -v node >/dev/null || return 0
	cat >"$tmp/files.js" <<-'EOF'
		const fs = require('fs'), path = require('path'), os = require('os');
		const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'node-'));
		const file = path.join(dir, 'a');
		fs.writeFileSync(file, 'text');
		fs.readFile(file, 'utf8', (error, text) => {
		  fs.rmSync(dir, { recursive: true });
		  let ticks = 0;
		  const timer = setInterval(() => {
		    if (++ticks < 5)
		      return;
		    clearInterval(timer);
		    console.log(error, text, fs.existsSync(dir));
		  }, 5);
		});
	EOF
	same node node "$tmp/files.js"
	says out 'null text false'
}

try_idle_cost() { # below 2 % of a core; once up to 3 % may be noise
	local cost
	cost=$("$sim" "$hold" idle 3)
	echo "an idle device costs $cost thousandths of a core"
	[ "$cost" -lt 20 ] && return
	[ "$cost" -lt 30 ] || fail "an idle device costs $cost thousandths of a core"
	cost=$("$sim" "$hold" idle 3)
	[ "$cost" -lt 20 ] || fail "an idle device costs $cost thousandths of a core, again"
}

part() { # NAME: says how what has just run went
	[ $failed -ne 0 ] || echo "ok   $1"
	all=$((all | failed))
	failed=0
}

all=0
try_usage
part usage
try_status
part 'exit status'
try_signals
part signals
try_set_uid
part set-uid
try_unsimulable
part 'not to be simulated'
try_foreign_files
part 'foreign files'
try_left_overs
part 'left over'
try_report
part report
try_fault_scripts
part 'fault scripts'
try_control
part control
try_guests
part 'valgrind and node'
try_idle_cost
part 'idle cost'
exit $all
