/* SPDX-License-Identifier: BSD-2-Clause */
/* A device in a libuv loop, beside a timer of the program's own; Ctrl-C closes it and ends. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <mlx5vfio/uv.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

struct program {
	const char *pci;
	struct mlx5vfio *dev; /* NULL: gone */
	uv_timer_t timer;
	uv_signal_t interrupt;
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
	       uv_strerror(error));
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
	       error ? uv_strerror(error) : "");
}

/* What the program keeps in the loop for the device's sake ends with it, and so does the loop. */
static void on_detached(void *arg)
{
	struct program *program = arg;

	program->dev = NULL;
	uv_close((uv_handle_t *)&program->timer, NULL);
	uv_close((uv_handle_t *)&program->interrupt, NULL);
}

static void on_timer(uv_timer_t *timer)
{
	const struct program *program = timer->data;

	printf("%s: the program goes on\n", program->pci);
}

static void on_interrupt(uv_signal_t *interrupt, int number)
{
	(void)number;
	stop(interrupt->data);
}

static int start_own(struct program *program, uv_loop_t *loop)
{
	int err = uv_timer_init(loop, &program->timer);

	if (!err)
		err = uv_signal_init(loop, &program->interrupt);
	program->timer.data = program->interrupt.data = program;
	if (!err)
		err = uv_timer_start(&program->timer, on_timer, 1000, 1000);
	return err ? err : uv_signal_start(&program->interrupt, on_interrupt, SIGINT);
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
	uv_loop_t *loop = uv_default_loop();
	struct ibv_context *ctx;
	char why[512];
	int err;

	if (argc != 2)
		return fail("usage", "uv-monitor PCI-NAME");
	/* Milliseconds, but minutes on sick firmware: no loop runs yet that would have to wait. */
	ctx = mlx5vfio_open(program.pci, 0, why, sizeof(why));
	if (!ctx)
		return fail(program.pci, why);
	program.dev = mlx5vfio_uv_attach(loop, ctx);
	if (!program.dev)
		return fail(program.pci, strerror(errno));
	mlx5vfio_set_handlers(program.dev, &handlers, &program);
	err = start_own(&program, loop);
	if (err)
		return fail(program.pci, uv_strerror(err));
	uv_run(loop, UV_RUN_DEFAULT);
	return uv_loop_close(loop) ? 1 : 0;
}
