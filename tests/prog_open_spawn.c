/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_open_spawn ours|plain exit|close: opens device 0 by mlx5vfio_open() or by libmlx5 alone, spawns
 * a program that outlives it, prints the pid of that, and ends, with or without closing the device.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test_open.h"

extern char **environ;

/* Its output must not keep our reader waiting. */
static pid_t spawn_sleep(void)
{
	static char *argv[] = { (char *)"sleep", (char *)"60", NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	support_require(!posix_spawnp(&pid, "sleep", &actions, NULL, argv, environ), "no child");
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;

	if (argc != 3)
		return 1;
	ctx = strcmp(argv[1], "ours") ? support_open(0) : test_open(0);
	printf("%d\n", (int)spawn_sleep());
	fflush(stdout);
	if (!strcmp(argv[2], "close"))
		support_require(!ibv_close_device(ctx), "cannot close");
	_exit(0); /* what is left open is no leak that anybody looks for */
}
