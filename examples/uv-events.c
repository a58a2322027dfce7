/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event queue in a libuv loop, with a completion queue that reports to it: port changes,
 * completions and CQ errors until Ctrl-C. uv-monitor.c has the handlers that are left out here.
 */
#include <errno.h>
#include <mlx5vfio/eq.h>
#include <mlx5vfio/uv.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "devx-cq.h"

#define BIT(type) (UINT64_C(1) << (type))

struct program {
	const char *pci;
	struct mlx5vfio *dev;   /* NULL: gone */
	struct mlx5vfio_eq *eq; /* NULL: nothing is watched */
	struct devx_cq cq;
	uv_signal_t interrupt;
};

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg);

/* Completions need no bit: they come from the CQs that are made with the queue's number. */
static int watch(struct program *program)
{
	const struct mlx5vfio_eq_attr attr = {
		.events = BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE) | BIT(MLX5VFIO_EVENT_CQ_ERROR),
	};
	uint32_t number;
	int err;

	program->eq = mlx5vfio_eq_open(program->dev, &attr, on_event, program);
	if (!program->eq)
		return -errno;
	number = mlx5vfio_eq_number(program->eq);
	err = devx_cq_create(&program->cq, mlx5vfio_context(program->dev), number);
	if (err) {
		mlx5vfio_eq_close(program->eq);
		program->eq = NULL;
		return err;
	}
	devx_cq_arm(&program->cq);
	printf("%s: CQ %u reports to event queue %u\n", program->pci, program->cq.number, number);
	return 0;
}

/* First the CQ, then the queue that it reports to. A dead device is not asked for either. */
static void unwatch(struct program *program)
{
	struct mlx5vfio_health now;

	if (program->eq && (mlx5vfio_get_health(program->dev, &now) || !now.fault)) {
		devx_cq_destroy(&program->cq);
		mlx5vfio_eq_close(program->eq);
	}
	program->eq = NULL;
}

/* An overrun ends a queue, and its CQ reports to nobody: both are made again. */
static void start_again(struct program *program)
{
	int err;

	unwatch(program);
	err = watch(program);
	if (err)
		printf("%s: nothing is watched: %s\n", program->pci, strerror(-err));
}

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	struct program *program = arg;

	(void)eq;
	printf("%s: %s", program->pci, mlx5vfio_event_str(event->type));
	if (event->type == MLX5VFIO_EVENT_PORT_STATE_CHANGE) {
		printf(": port %u, state %u\n", event->port, event->sub_type);
	} else if (event->type == MLX5VFIO_EVENT_COMPLETION) {
		printf(": CQ %u, %u entries\n", event->cqn, devx_cq_take(&program->cq));
		devx_cq_arm(&program->cq);
	} else if (event->type == MLX5VFIO_EVENT_CQ_ERROR) {
		printf(": CQ %u\n", event->cqn);
	} else {
		printf("\n");
		if (event->type == MLX5VFIO_EVENT_QUEUE_OVERRUN)
			start_again(program);
	}
}

/* Closing a dead device takes minutes: the second Ctrl-C does not wait for its end. */
static void stop(struct program *program)
{
	unwatch(program);
	if (!mlx5vfio_close(program->dev))
		return;
	mlx5vfio_detach(program->dev); /* the end of the process closes it */
	program->dev = NULL;
}

static void on_interrupt(uv_signal_t *interrupt, int number)
{
	(void)number;
	stop(interrupt->data);
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct program *program = arg;

	(void)dev;
	if (!health->fault)
		return; /* a warning */
	printf("%s: %s\n", program->pci, mlx5vfio_fault_str(health->fault));
	stop(program);
}

static void on_detached(void *arg)
{
	struct program *program = arg;

	printf("%s: gone\n", program->pci);
	program->dev = NULL;
	uv_close((uv_handle_t *)&program->interrupt, NULL);
}

int main(int argc, char **argv)
{
	const struct mlx5vfio_handlers handlers = { .health = on_health, .detached = on_detached };
	struct program program = { .pci = argv[1] };
	uv_loop_t *loop = uv_default_loop();
	char why[512] = "usage: uv-events PCI-NAME";
	struct ibv_context *ctx = argc == 2 ? mlx5vfio_open(argv[1], 0, why, sizeof(why)) : NULL;
	int err;

	program.dev = ctx ? mlx5vfio_uv_attach(loop, ctx) : NULL;
	if (!program.dev)
		return fprintf(stderr, "%s\n", ctx ? strerror(errno) : why), 1;
	mlx5vfio_set_handlers(program.dev, &handlers, &program);
	err = watch(&program);
	if (err)
		return fprintf(stderr, "%s: %s\n", program.pci, strerror(-err)), 1;
	uv_signal_init(loop, &program.interrupt);
	program.interrupt.data = &program;
	uv_signal_start(&program.interrupt, on_interrupt, SIGINT);
	uv_run(loop, UV_RUN_DEFAULT);
	return uv_loop_close(loop) ? 1 : 0;
}
