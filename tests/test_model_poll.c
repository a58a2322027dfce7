/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; show timeout=300 seconds=10 */
/* Random operations against the model, on a program that polls by itself. */
#include "model/loop_poll.c"
#include "model/run.c"

int main(int argc, char **argv)
{
	return model_main(argc, argv);
}
