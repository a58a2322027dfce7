/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
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

static void complain(const char *format, va_list args)
{
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void support_require(bool ok, const char *format, ...)
{
	va_list args;

	if (ok)
		return;
	va_start(args, format);
	complain(format, args);
	va_end(args);
	exit(EXIT_FAILURE);
}

void support_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	exit(EXIT_FAILURE);
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

	if (!list)
		support_fail("no device list for %s: errno %d", attr.pci_name, errno);
	ctx = ibv_open_device(list[0]);
	if (!ctx)
		support_fail("cannot open %s: errno %d", attr.pci_name, errno);
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
	if (!mlx5vfio_sim_present())
		support_fail("not under mlx5vfio-sim");
	ret = mlx5vfio_sim_control(line, reply, sizeof(reply));
	support_require(ret == 0, "\"%s\": %d %s", line, ret, reply);
}

struct mlx5vfio_sim_stats support_stats(unsigned dev)
{
	struct mlx5vfio_sim_stats stats;

	support_require(!mlx5vfio_sim_get_stats(dev, &stats), "no device %u", dev);
	return stats;
}

int support_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	if (!dir)
		support_fail("no /proc/self/fd");
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 3; /* ".", ".." and the directory itself */
}

void support_allow_fds(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void become(const char *const argv[], int out)
{
	const char *dir = getenv("TEST_DIR");
	char path[4096];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "build/tests", argv[0]);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execv(path, (char *const *)argv);
	_exit(127);
}

struct support_child support_start(const char *const argv[])
{
	struct support_child child;
	int pipes[2];

	support_require(!pipe2(pipes, O_CLOEXEC), "no pipe");
	child.pid = fork();
	support_require(child.pid >= 0, "no child");
	if (!child.pid)
		become(argv, pipes[1]);
	close(pipes[1]);
	child.out = pipes[0];
	return child;
}

int support_finish(struct support_child child, char *output, size_t size)
{
	size_t used = 0;
	int status = -1;
	ssize_t got;

	while ((got = read(child.out, output + used, size - 1 - used)) > 0)
		used += (size_t)got;
	output[used] = '\0';
	close(child.out);
	while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
