/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of the loop with what must be true after each, and a sequence from beginning to end. */
#include <dirent.h>

#include "operations.c"

static bool in_epoll(int epoll, int fd)
{
	char path[64], line[128];
	bool found = false;
	FILE *info;
	int tfd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epoll);
	info = fopen(path, "re");
	while (info && !found && fgets(line, sizeof(line), info))
		found = sscanf(line, "tfd: %d", &tfd) == 1 && tfd == fd;
	if (info)
		fclose(info);
	return found;
}

static void check_unwatched(const struct slot *slot)
{
	int fd = mlx5dv_vfio_get_events_fd(slot->ctx);
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[300], link[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, link, sizeof(link) - 1) > 0 && strstr(link, "[eventpoll]"))
			require(!in_epoll(atoi(entry->d_name), fd), slot, "still watched");
	}
	if (dir)
		closedir(dir);
}

static void check_stats(struct slot *slot, int turned_ms)
{
	const struct mlx5vfio_stats *was = &slot->stats;
	struct mlx5vfio_stats now;

	mlx5vfio_get_stats(slot->dev, &now, sizeof(now));
	require(now.wakeups >= was->wakeups && now.ticks >= was->ticks && now.calls >= was->calls &&
			now.errors >= was->errors && now.retries >= was->retries &&
			now.reports >= was->reports && now.samples >= was->samples &&
			now.deferred >= was->deferred && now.events >= was->events,
		slot, "a counter went back");
	require(now.errors <= now.calls && now.retries <= now.calls + now.deferred + 1 &&
			now.reports <= now.errors,
		slot, "counters disagree");
	require(now.calls - was->calls <= 300 + 50 * (uint64_t)turned_ms, slot, "spins");
	require(now.retries - was->retries <= 8 + (uint64_t)turned_ms, slot, "retries spin");
	require(now.deferred - was->deferred <= 8 + (uint64_t)turned_ms, slot, "deferrals spin");
	require(!slot->dead || now.calls == was->calls, slot, "a dead device was processed");
	slot->dead = slot->faults_told;
	world.calls += now.calls - was->calls;
	slot->stats = now;
}

static void check_fault_told(struct slot *slot, int turned_ms)
{
	if (!slot->faulty || slot->frozen)
		return;
	slot->fault_turned_ms += turned_ms;
	require(slot->faults_told || slot->fault_turned_ms <= slot->interval_ms + NOTICE_MS, slot,
		"a fault was not told");
}

static void check_removal_told(struct slot *slot, int turned_ms)
{
	if (!slot->removal_asked || !(mlx5vfio_features(slot->dev) & MLX5VFIO_FEATURE_REMOVAL))
		return;
	slot->removal_turned_ms += turned_ms;
	require(slot->removals_told || slot->removal_turned_ms <= slot->interval_ms + NOTICE_MS,
		slot, "a removal was not told");
}

static void check_retried(struct slot *slot, int turned_ms)
{
	if (slot->stats.retries > slot->retries_at_error)
		slot->error_turned_ms = -1;
	if (slot->stats.deferred > slot->deferred_at_error)
		slot->retry_ms = DEFERRED_MS;
	if (slot->error_turned_ms < 0 || slot->was_faulty)
		return;
	slot->error_turned_ms += turned_ms;
	require(slot->error_turned_ms <= slot->retry_ms, slot, "no retry after an error");
}

/* What must have happened when the loop has turned for long enough. */
static void check_told(struct slot *slot, int turned_ms)
{
	slot->missed |= !slot->listener;
	if (slot->fresh || slot->missed) {
		slot->fresh = false;
		return;
	}
	check_retried(slot, turned_ms);
	if (!slot->interval_ms)
		return;
	check_fault_told(slot, turned_ms);
	if (!slot->was_faulty)
		check_removal_told(slot, turned_ms);
}

static void check_slot(struct slot *slot, int turned_ms)
{
	if (slot->dev && !slot->closing) {
		check_stats(slot, turned_ms);
		check_told(slot, turned_ms);
	}
	if (slot->ctx && !slot->dev && tested_loop.epoll_is_exact)
		check_unwatched(slot);
}

/* The last turns do not wait: what is due then is done, however late the loop got to run. */
static void turn(int ms)
{
	int64_t start = support_now_ms();
	int64_t left = ms;
	int turned_ms;

	world.turning = true;
	while (left > 0) {
		tested_loop.turn(world.loop, (int)left);
		left = start + ms - support_now_ms();
	}
	turned_ms = (int)(support_now_ms() - start);
	for (int i = 0; i < 3; i++)
		tested_loop.turn(world.loop, 0);
	world.turning = false;
	require(!world.let_go, NULL, ".detached did not come");
	for (int i = 0; i < SLOTS; i++)
		check_slot(&world.slots[i], turned_ms);
}

/* What programs do that destroy their loop too early. */
static void wreck(void)
{
	for (int i = 0; i < SLOTS; i++) {
		if (world.slots[i].closing)
			return;
		if (world.slots[i].dev)
			look_before_detach(&world.slots[i]);
	}
	turn(0);
	for (int i = 0; i < SLOTS; i++)
		if (world.slots[i].closing)
			return;
	tested_loop.wreck(world.loop);
	for (int i = 0; i < SLOTS; i++) {
		struct mlx5vfio *dev = world.slots[i].dev;

		forget_attachment(&world.slots[i]);
		world.detaching = true;
		mlx5vfio_forget(dev);
		world.detaching = false;
	}
	require(!world.let_go, NULL, ".detached did not come from forget");
	world.loop = tested_loop.create();
}

static void operate(const struct op *op)
{
	struct slot *slot = &world.slots[op->slot];

	switch (op->kind) {
	case OP_TURN:
		turn(op->arg);
		break;
	case OP_BLOCK:
		usleep((unsigned)op->arg * 1000);
		break;
	case OP_OPEN:
		open_ctx(slot, op->arg);
		break;
	case OP_ATTACH:
		attach(slot);
		break;
	case OP_DETACH:
		detach(slot);
		break;
	case OP_CLOSE:
		close_ctx(slot);
		break;
	case OP_CLOSE_BY_LIBRARY:
		close_by_library(slot);
		break;
	case OP_LISTEN:
		set_listener(slot, op->arg < REACTIONS ? (enum reaction)op->arg : REACT_NOT);
		break;
	case OP_DEAF:
		deafen(slot);
		break;
	case OP_INTERVAL:
		set_interval(slot, op->arg);
		break;
	case OP_REF:
	case OP_UNREF:
		set_reference(slot, op->kind == OP_REF);
		break;
	case OP_FAULT:
		fault(slot, op->arg);
		break;
	case OP_HEAL:
		heal(slot);
		break;
	case OP_PAGES:
		request_pages(slot, op->arg, "spaced every 200us");
		break;
	case OP_BURST:
		burst(slot, op->arg);
		break;
	case OP_FAIL:
		fail_requests(slot, op->arg);
		break;
	case OP_LOSE:
		if (slot->ctx)
			support_sim("lose-interrupt %d %d", slot->number, op->arg + 1);
		break;
	case OP_SPURIOUS:
		if (slot->ctx)
			support_sim("spurious %d", slot->number);
		break;
	case OP_SYNDROME:
		warn(slot, op->arg);
		break;
	case OP_REMOVAL:
		ask_for_removal(slot);
		break;
	case OP_AER:
		signal_pci_error(slot);
		break;
	case OP_COMMANDS:
		start_commands(slot, op->arg);
		break;
	case OP_EQ_OPEN:
		open_eq(slot);
		break;
	case OP_EQ_CLOSE:
		close_eq(slot);
		break;
	case OP_PORT:
		if (slot->ctx)
			support_sim("port %d %s", slot->number, op->arg ? "up" : "down");
		break;
	case OP_HEALTH:
		ask_health(slot);
		break;
	case OP_GUARD:
		switch_guard(slot);
		break;
	case OP_WRECK:
		wreck();
		break;
	}
	require(tested_loop.lets_go_later || !world.let_go, slot, ".detached did not come at once");
}

static void finish_slot(struct slot *slot)
{
	int64_t end = support_now_ms() + PATIENCE_MS;

	while (slot->closing) {
		require(support_now_ms() < end, slot, ".closed did not come");
		turn(10);
	}
	close_ctx(slot);
}

/* The library forgets a device that was closed without having been attached at the next attach. */
static void sweep(void)
{
	struct ibv_context *ctx = support_open(0);

	mlx5vfio_detach(mlx5vfio_attach(ctx, NULL, NULL));
	ibv_close_device(ctx);
}

/* As many as before: helper threads whose end nobody waited for get their time. */
static void expect_fds(void)
{
	int64_t end = support_now_ms() + PATIENCE_MS;

	while (support_open_fds() != world.fds) {
		require(support_now_ms() < end, NULL, "fds are left");
		usleep(1000);
	}
}

static void world_run(const struct ops *ops)
{
	/* What is opened once and kept is there before the count. */
	ibv_close_device(support_open(0));
	tested_loop.destroy(tested_loop.create());
	world.fds = support_open_fds();
	world.loop = tested_loop.create();
	for (int i = 0; i < SLOTS; i++)
		world.slots[i].number = i;
	for (int i = 0; i < ops->count; i++)
		operate(&ops->op[i]);
	for (int i = 0; i < SLOTS; i++)
		finish_slot(&world.slots[i]);
	turn(1);
	require(tested_loop.destroy(world.loop), NULL, "something is left on the loop");
	sweep();
	expect_fds();
	printf("%llu %llu %llu %llu %llu %llu %llu\n", (unsigned long long)world.calls,
	       (unsigned long long)world.told_faults, (unsigned long long)world.told_errors,
	       (unsigned long long)world.told_removals, (unsigned long long)world.told_events,
	       (unsigned long long)world.closed, (unsigned long long)world.detached);
}
