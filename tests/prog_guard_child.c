/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prog_guard_child WHAT: what a test of the guard cannot do in its own process, because it may die
 * of it.
 *
 *	silent		a fault with no handler set: one line on standard error
 *	off		the guard switched off, then a fault: libmlx5 aborts
 *	on		off, on again, then a fault: told
 *	stall-off	the counter frozen while the guard is off, on just before libmlx5 aborts
 *	late		a program that polled the frozen device attaches just before the abort
 *	close		ibv_close_device() on the dead device inside .health
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mlx5vfio/core.h>

#include "support/support.h"

#define INTERVAL_MS 20

static struct {
	struct mlx5vfio *dev; /* NULL after a detach */
	struct ibv_context *ctx;
	bool close_inside;
	int told;
} child;

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	(void)arg;
	if (health->fault == MLX5VFIO_OK)
		return;
	child.told++;
	printf("%s\n", mlx5vfio_fault_str(health->fault));
	if (!child.close_inside)
		return;
	child.dev = NULL;
	mlx5vfio_detach(dev);
	support_require(!ibv_close_device(child.ctx), "close");
}

static void attach(bool with_handler)
{
	static const struct mlx5vfio_handlers handlers = { .health = on_health };

	child.dev = mlx5vfio_attach(child.ctx, NULL, NULL);
	support_require(child.dev && mlx5vfio_guarded(child.dev), "not guarded");
	if (with_handler)
		mlx5vfio_set_handlers(child.dev, &handlers, NULL);
	mlx5vfio_set_interval(child.dev, INTERVAL_MS);
}

static void turn(void)
{
	struct pollfd fd;
	int timeout = mlx5vfio_timeout_ms(child.dev);
	int n = mlx5vfio_pollfds(child.dev, &fd, 1);

	poll(&fd, (nfds_t)n, timeout < 0 ? INTERVAL_MS : timeout);
	if (n && fd.revents)
		mlx5vfio_process(child.dev, fd.fd, fd.revents);
	if (child.dev && !mlx5vfio_timeout_ms(child.dev))
		mlx5vfio_process(child.dev, -1, 0);
}

static void turn_for(int ms)
{
	int64_t end = support_now_ms() + ms;

	while (child.dev && support_now_ms() < end)
		turn();
}

static void silent(void)
{
	dup2(STDOUT_FILENO, STDERR_FILENO);
	attach(false);
	turn_for(100);
	support_sim("fatal 0 0x1");
	turn_for(300);
}

static void off(bool on_again)
{
	attach(true);
	turn_for(100);
	support_require(!mlx5vfio_set_guard(child.dev, false), "cannot be switched off");
	support_require(!mlx5vfio_guarded(child.dev), "still on");
	turn_for(100);
	if (on_again) {
		support_require(!mlx5vfio_set_guard(child.dev, true), "cannot be switched on");
		support_require(mlx5vfio_guarded(child.dev), "still off");
	}
	support_sim("nic-disabled 0");
	turn_for(2500);
}

/* Its last good check may be a second old at the freeze: the abort is due after three to four. */
static void stall_off(void)
{
	attach(true);
	mlx5vfio_set_guard(child.dev, false);
	turn_for(100);
	support_sim("freeze 0");
	turn_for(3400);
	mlx5vfio_set_guard(child.dev, true);
	mlx5vfio_set_interval(child.dev, MLX5VFIO_DEFAULT_INTERVAL);
	turn_for(4000);
}

/* The abort is due 3000 ms after its first check: at the attach it has counted two misses. */
static void late(void)
{
	int64_t end;

	usleep(50000); /* a counter that still is 0 would be libmlx5's first miss */
	support_sim("freeze 0");
	for (end = support_now_ms() + 2600; support_now_ms() < end; usleep(10000))
		mlx5dv_vfio_process_events(child.ctx);
	attach(true);
	mlx5vfio_set_interval(child.dev, MLX5VFIO_DEFAULT_INTERVAL);
	turn_for(4000);
}

/* Closing a dead device takes libmlx5 240 s of the wall clock. */
static void close_dead(void)
{
	child.close_inside = true;
	attach(true);
	turn_for(100);
	support_sim("clock-rate 1000");
	support_sim("pci-offline 0");
	turn_for(5000);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	child.ctx = support_open(0);
	if (!strcmp(what, "silent"))
		silent();
	else if (!strcmp(what, "off"))
		off(false);
	else if (!strcmp(what, "on"))
		off(true);
	else if (!strcmp(what, "stall-off"))
		stall_off();
	else if (!strcmp(what, "late"))
		late();
	else if (!strcmp(what, "close"))
		close_dead();
	else
		return 2;
	printf("alive, told %d\n", child.told);
	fflush(stdout);
	_exit(0);
}
