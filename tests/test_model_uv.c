/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; show timeout=300 seconds=10 */
/* Random operations against the model, on libuv. */
#include "model/loop_uv.c"
#include "model/run.c"

int main(int argc, char **argv)
{
	return model_main(argc, argv);
}
