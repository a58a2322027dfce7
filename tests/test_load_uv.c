/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 64; tsan show seconds=10 timeout=300 */
/* Many events and many devices with command threads beside them, on libuv. */
#include "model/loop_uv.c"
#include "loading/scenarios.c"

int main(void)
{
	return loading_run();
}
