/* SPDX-License-Identifier: BSD-2-Clause */
/* A device in a libev loop, beside a timer of the program's own; Ctrl-C closes it and ends. */
#include <errno.h>
#include <ev.h>
#include <infiniband/verbs.h>
#include <mlx5vfio/libev.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct program {
	const char *pci;
	struct mlx5vfio *dev; /* NULL: gone */
	ev_timer timer;
	ev_signal interrupt;
};

/* Closing a dead device takes minutes: the second Ctrl-C does not wait for its end. */
static void stop(struct program *program)
{
	if (!mlx5vfio_close(program->dev))
		return;
	mlx5vfio_detach(program->dev); /* the end of the process closes it */
	program->dev = NULL;
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct program *program = arg;

	(void)dev;
	if (health->fault || health->warning)
		printf("%s: %s, syndrome 0x%02x (%s), firmware %u.%u.%04u\n", program->pci,
		       health->fault ? mlx5vfio_fault_str(health->fault) : "warning", health->synd,
		       mlx5vfio_synd_str(health->synd), health->fw_major, health->fw_minor,
		       health->fw_subminor);
	else
		printf("%s: the warning is over\n", program->pci);
	if (health->fault)
		stop(program);
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	(void)dev;
	printf("%s: events are not handled for now: %s\n", ((struct program *)arg)->pci,
	       strerror(-error));
}

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	(void)dev;
	printf("%s: the kernel wants it back\n", ((struct program *)arg)->pci);
	stop(arg);
}

static void on_closed(int error, void *arg)
{
	printf("%s: closed%s%s\n", ((struct program *)arg)->pci, error ? ": " : "",
	       error ? strerror(-error) : "");
}

/* What the program keeps in the loop for the device's sake ends with it, and so does the loop. */
static void on_detached(void *arg)
{
	struct program *program = arg;

	program->dev = NULL;
	ev_timer_stop(EV_DEFAULT_UC, &program->timer);
	ev_signal_stop(EV_DEFAULT_UC, &program->interrupt);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
	const struct program *program = timer->data;

	(void)loop;
	(void)revents;
	printf("%s: the program goes on\n", program->pci);
}

static void on_interrupt(struct ev_loop *loop, ev_signal *interrupt, int revents)
{
	(void)loop;
	(void)revents;
	stop(interrupt->data);
}

static void start_own(struct program *program, struct ev_loop *loop)
{
	ev_timer_init(&program->timer, on_timer, 1., 1.);
	program->timer.data = program;
	ev_timer_start(loop, &program->timer);
	ev_signal_init(&program->interrupt, on_interrupt, SIGINT);
	program->interrupt.data = program;
	ev_signal_start(loop, &program->interrupt);
}

static int fail(const char *pci, const char *why)
{
	fprintf(stderr, "%s: %s\n", pci, why);
	return 1;
}

int main(int argc, char **argv)
{
	const struct mlx5vfio_handlers handlers = {
		.health = on_health,
		.error = on_error,
		.removal = on_removal,
		.closed = on_closed,
		.detached = on_detached,
	};
	struct program program = { .pci = argv[1] };
	struct ev_loop *loop = ev_default_loop(0);
	struct ibv_context *ctx;
	char why[512];

	if (argc != 2)
		return fail("usage", "libev-monitor PCI-NAME");
	if (!loop)
		return fail("libev", "no default loop");
	/* Milliseconds, but minutes on sick firmware: no loop runs yet that would have to wait. */
	ctx = mlx5vfio_open(program.pci, 0, why, sizeof(why));
	if (!ctx)
		return fail(program.pci, why);
	program.dev = mlx5vfio_libev_attach(loop, ctx);
	if (!program.dev)
		return fail(program.pci, strerror(errno));
	mlx5vfio_set_handlers(program.dev, &handlers, &program);
	start_own(&program, loop);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	return 0;
}
