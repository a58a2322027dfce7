/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

int support_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int support_rounds(int full)
{
	const char *factor = getenv("TEST_SLOW_FACTOR");
	int divisor = factor ? atoi(factor) : 1;
	int rounds = full / (divisor > 0 ? divisor : 1);

	return rounds > 0 ? rounds : 1;
}

int64_t support_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *support_pci_name(unsigned dev)
{
	static _Thread_local char name[32];
	unsigned bus = 0xb0 + dev;

	snprintf(name, sizeof(name), "%04x:%02x:00.0", bus >> 8, bus & 0xff);
	return name;
}

struct ibv_context *support_open(unsigned dev)
{
	struct mlx5dv_vfio_context_attr attr = { .pci_name = support_pci_name(dev) };
	struct ibv_device **list = mlx5dv_get_vfio_device_list(&attr);
	struct ibv_context *ctx;

	ck_assert_msg(list != NULL, "no device list for %s: errno %d", attr.pci_name, errno);
	ctx = ibv_open_device(list[0]);
	ck_assert_msg(ctx != NULL, "cannot open %s: errno %d", attr.pci_name, errno);
	ibv_free_device_list(list);
	return ctx;
}

void support_sim(const char *format, ...)
{
	char line[256], reply[256] = "";
	va_list args;
	int ret;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	ck_assert_msg(mlx5vfio_sim_present(), "not under mlx5vfio-sim");
	ret = mlx5vfio_sim_control(line, reply, sizeof(reply));
	ck_assert_msg(ret == 0, "\"%s\": %d %s", line, ret, reply);
}

struct mlx5vfio_sim_stats support_stats(unsigned dev)
{
	struct mlx5vfio_sim_stats stats;

	ck_assert_int_eq(mlx5vfio_sim_get_stats(dev, &stats), 0);
	return stats;
}

int support_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 3; /* ".", ".." and the directory itself */
}

int support_spawn(const char *const argv[])
{
	const char *dir = getenv("TEST_DIR");
	char path[4096];
	int status = -1;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "build/tests", argv[0]);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		execv(path, (char *const *)argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
