/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; show timeout=200 seconds=10 */
/* Every call that the library makes to the system fails once, on libev. */
#include "failing/inject.c"
#include "model/loop_libev.c"
#include "failing/scenarios.c"

int main(void)
{
	return failing_run();
}
