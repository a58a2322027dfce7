#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sim: none; show
#
# A client that nobody here wrote: Debian's pyverbs opens a simulated device.
set -u
cd "$(dirname "$0")/.." || exit 1

build=${BUILD:-build}
python=/usr/bin/python3
if ! $python -c 'import pyverbs.providers.mlx5.mlx5_vfio' 2>/dev/null; then
	echo 'python3-pyverbs is not installed'
	exit 77
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

printf '300ms page-request 0 16 4 spaced\n' >"$tmp/faults"
cat >"$tmp/client.py" <<'EOF'
import select
import time
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.providers.mlx5.mlx5_vfio import Mlx5VfioAttr, Mlx5VfioContext
import pyverbs.enums as e

ctx = Mlx5VfioContext(attr=Mlx5VfioAttr(pci_name="0000:b0:00.0"))
poll = select.poll()
poll.register(ctx.get_events_fd(), select.POLLIN)
with PD(ctx) as pd:
    with MR(pd, 8192, e.IBV_ACCESS_LOCAL_WRITE) as mr:
        assert mr.lkey == mr.rkey
end = time.monotonic() + 2
events = 0
while time.monotonic() < end:
    if poll.poll(100):
        events += 1
    ctx.process_events()
ctx.close()
assert events, "no event"
print("ok")
EOF
said=$("$build/bin/mlx5vfio-sim" --report --faults "$tmp/faults" -- $python "$tmp/client.py" 2>"$tmp/err")
status=$?
cat "$tmp/err"
report='pages requested 64, given 64, asked back 0, returned 0, DMA maps left 0, violations 0'
[ $status -eq 0 ] && [ "$said" = ok ] && grep -qF "$report" "$tmp/err" && exit 0
echo "FAIL status $status, said \"$said\""
exit 1
