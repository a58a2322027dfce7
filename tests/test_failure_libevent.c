/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; show timeout=200 seconds=18 */
/* Every call that the library makes to the system fails once, on libevent. */
#include "failing/inject.c"
#include "failing/inject_libevent.c"
#include "model/loop_libevent.c"
#include "failing/scenarios.c"

int main(void)
{
	return failing_run();
}
