/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 64; tsan show seconds=10 timeout=300 */
/* Many events and many devices with command threads beside them, on a program that polls by itself. */
#include "model/loop_poll.c"
#include "loading/scenarios.c"

int main(void)
{
	return loading_run();
}
