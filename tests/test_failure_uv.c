/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; show timeout=200 seconds=7 */
/* Every call that the library makes to the system fails once, on libuv. */
#include "failing/inject.c"
#include "failing/inject_uv.c"
#include "model/loop_uv.c"
#include "failing/scenarios.c"

int main(void)
{
	return failing_run();
}
