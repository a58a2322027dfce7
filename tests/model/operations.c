/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done to a device. An operation that makes no sense just then does nothing. */
#include "handlers.c"

/* After a close by the library that nobody waited for, the device may still be in use. */
static void open_ctx(struct slot *slot, bool by_library)
{
	int64_t end = support_now_ms() + PATIENCE_MS;
	char why[256];

	if (slot->ctx || slot->closing)
		return;
	while (!slot->ctx) {
		slot->ctx = mlx5vfio_open(support_pci_name((unsigned)slot->number), 0, why,
					  sizeof(why));
		if (!slot->ctx)
			require(errno == EBUSY && support_now_ms() < end, slot, why);
	}
	/* As a ctx is that the program opened itself. */
	if (!by_library) {
		require(!ibv_close_device(slot->ctx), slot, "close failed");
		slot->ctx = support_open((unsigned)slot->number);
	}
	*slot = (struct slot){ .number = slot->number, .ctx = slot->ctx, .by_library = by_library };
}

static void attach(struct slot *slot)
{
	struct mlx5vfio *dev;

	if (!slot->ctx)
		return;
	dev = tested_loop.attach(world.loop, slot->ctx);
	if (slot->dev) {
		require(!dev && errno == EBUSY, slot, "attached twice");
		return;
	}
	require(dev != NULL, slot, "not attached");
	require(mlx5vfio_guarded(dev), slot, "not guarded");
	slot->dev = dev;
	slot->interval_ms = MLX5VFIO_DEFAULT_INTERVAL;
	slot->was_faulty = slot->faulty;
	slot->faults_told = slot->removals_told = slot->errors_told = 0;
	slot->fault_turned_ms = slot->removal_turned_ms = 0;
	slot->error_turned_ms = -1;
	slot->missed = slot->dead = false;
	slot->fresh = true;
	memset(&slot->stats, 0, sizeof(slot->stats));
}

static const struct mlx5vfio_handlers handlers = {
	.health = on_health,
	.error = on_error,
	.removal = on_removal,
	.closed = on_closed,
	.detached = on_detached,
};

static void set_listener(struct slot *slot, enum reaction reaction)
{
	if (!slot->dev || slot->closing)
		return;
	free_listener(slot);
	slot->listener = calloc(1, sizeof(*slot->listener));
	if (!slot->listener)
		support_fail("no memory");
	*slot->listener = (struct listener){ MAGIC, slot, reaction, false };
	mlx5vfio_set_handlers(slot->dev, &handlers, slot->listener);
}

/* A warning and a fault that nobody heard are not told again. */
static void deafen(struct slot *slot)
{
	if (!slot->dev || slot->closing || slot->was_faulty)
		return;
	mlx5vfio_set_handlers(slot->dev, NULL, NULL);
	free_listener(slot);
}

static void close_by_library(struct slot *slot)
{
	if (!slot->dev)
		return;
	if (slot->closing) {
		require(mlx5vfio_close(slot->dev) == -EALREADY, slot, "closed twice");
		return;
	}
	if (!slot->listener)
		set_listener(slot, REACT_NOT);
	make_closable(slot);
	require(!mlx5vfio_close(slot->dev), slot, "cannot be closed");
	slot->closing = true;
	slot->ctx = NULL;
	memset(slot->eqs, 0, sizeof(slot->eqs));
}

static void set_interval(struct slot *slot, int choice)
{
	static const int intervals[] = { 10, 20, 50, 100, 500, 0, 9, 3600001 };
	int ms = intervals[choice];
	bool wrong = ms == 9 || ms == 3600001;

	if (!slot->dev || slot->closing)
		return;
	require(mlx5vfio_set_interval(slot->dev, ms) == (wrong ? -EINVAL : 0), slot, "interval");
	if (!wrong)
		slot->interval_ms = ms;
	slot->fault_turned_ms = slot->removal_turned_ms = 0;
	slot->fresh = true;
}

static void set_reference(const struct slot *slot, bool on)
{
	int expected = tested_loop.can_unref ? 0 : -ENOTSUP;

	if (slot->dev)
		require((on ? mlx5vfio_ref : mlx5vfio_unref)(slot->dev) == expected, slot,
			"reference");
}

/* libmlx5 checks health in the call that follows, and would abort. */
static void bring_check(const struct slot *slot)
{
	support_sim("clock-step 1000");
	support_sim("spurious %d", slot->number);
}

static void fault(struct slot *slot, int choice)
{
	static const char *const faults[] = { "pci-offline", "nic-disabled", "nic-reset", "fatal" };

	if (!slot->ctx || slot->faulty)
		return;
	slot->frozen = !choice;
	support_sim("%s %d", slot->frozen ? "freeze" : faults[choice % 4], slot->number);
	slot->faulty = slot->was_faulty = true;
	slot->fault_turned_ms = 0;
	if (choice >= 6)
		bring_check(slot);
}

static void request_pages(struct slot *slot, int count, const char *how)
{
	if (slot->ctx && count)
		support_sim("page-request %d 1 %d %s", slot->number, count, how);
}

/* Not with queues: the command that closes one would get the error of a page request. */
static bool has_queues(const struct slot *slot)
{
	return slot->eqs[0] || slot->eqs[1];
}

static void burst(struct slot *slot, int count)
{
	if (!slot->ctx || has_queues(slot))
		return;
	slot->may_fail = true;
	request_pages(slot, count, "");
}

static void fail_requests(struct slot *slot, int count)
{
	if (!slot->ctx || has_queues(slot))
		return;
	slot->may_fail = true;
	support_sim("fail %d 0x108 1 %d", slot->number, count + 1);
	request_pages(slot, count + 1, "spaced");
}

/* It would take the place of a fatal syndrome. */
static void warn(struct slot *slot, int syndrome)
{
	if (!slot->ctx || slot->faulty)
		return;
	slot->may_warn = true;
	support_sim("syndrome %d %d", slot->number, syndrome);
}

static void ask_for_removal(struct slot *slot)
{
	if (!slot->ctx)
		return;
	slot->removal_asked = true;
	support_sim("remove-request %d", slot->number);
}

static void signal_pci_error(struct slot *slot)
{
	if (!slot->ctx)
		return;
	slot->may_warn = true;
	support_sim("aer %d", slot->number);
}

static void start_commands(struct slot *slot, int count)
{
	if (!slot->ctx || slot->has_thread)
		return;
	slot->commands = count;
	slot->has_thread = true;
	require(!pthread_create(&slot->thread, NULL, commands, slot), slot, "no thread");
}

static void open_eq(struct slot *slot)
{
	static const struct mlx5vfio_eq_attr attr = {
		.log_size = 5,
		.events = UINT64_C(1) << MLX5VFIO_EVENT_PORT_STATE_CHANGE,
	};
	int free_one = slot->eqs[0] ? 1 : 0;

	if (!slot->dev || slot->eqs[free_one] || slot->may_fail || slot->faulty || slot->closing)
		return;
	prepare_command(slot);
	errno = 0;
	slot->eqs[free_one] = mlx5vfio_eq_open(slot->dev, &attr, on_event, slot);
	if (!slot->eqs[free_one])
		require(errno == ENODEV && slot->was_faulty, slot, "no queue");
}

static void close_eq(struct slot *slot)
{
	int last = slot->eqs[1] ? 1 : 0;

	if (!slot->eqs[last] || slot->faulty)
		return;
	prepare_command(slot);
	mlx5vfio_eq_close(slot->eqs[last]);
	slot->eqs[last] = NULL;
}

static void ask_health(struct slot *slot)
{
	struct mlx5vfio_health health;
	int ret;

	if (!slot->dev)
		return;
	ret = mlx5vfio_get_health(slot->dev, &health);
	require(ret == (slot->closing ? -ENOTSUP : 0), slot, "get_health");
	require(!slot->faults_told || ret || health.fault != MLX5VFIO_OK, slot, "it lives again");
	require(slot->was_faulty || health.fault == MLX5VFIO_OK, slot, "a fault that was not");
}

/* Off and on again while nothing is wrong. */
static void switch_guard(struct slot *slot)
{
	if (!slot->dev || slot->closing || slot->was_faulty)
		return;
	require(!mlx5vfio_set_guard(slot->dev, false) && !mlx5vfio_guarded(slot->dev), slot,
		"the guard stays on");
	require(!mlx5vfio_set_guard(slot->dev, true) && mlx5vfio_guarded(slot->dev), slot,
		"the guard stays off");
}
