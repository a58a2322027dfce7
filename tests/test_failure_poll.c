/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; show timeout=200 seconds=9 */
/* Every call that the library makes to the system fails once, on a program that polls by itself. */
#include "failing/inject.c"
#include "model/loop_poll.c"
#include "failing/scenarios.c"

int main(void)
{
	return failing_run();
}
