/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No loop library: epoll and poll as written by hand, and the program that measures them against
 * ours: put into the same epoll loop through mlx5vfio_loop_ops ("ours"), and polled with
 * mlx5vfio_pollfds() ("poll").
 */
#include "common/bench.c"

#include <sys/epoll.h>
#include <sys/timerfd.h>

enum { AT_ONCE = 64 };

/* What every loop here has: things that want to hear of an fd. */
struct source {
	void (*ready)(struct source *source, uint32_t events);
};

static int source_watch(int epoll, int fd, struct source *source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* ---- By hand: an epoll loop, and a timerfd so that libmlx5 checks health -------------------- */

struct glue {
	struct source source;
	struct epoll_loop *loop;
	struct ibv_context *ctx;
	struct glue *next;
};

struct epoll_loop {
	struct source timer; /* first */
	int epoll, timerfd;
	struct glue *glues;
	bool stopped;
};

static void process(const struct glue *glue)
{
	int err = mlx5dv_vfio_process_events(glue->ctx);

	if (err)
		fprintf(stderr, "process_events: %d\n", err);
}

static void on_second(struct source *source, uint32_t events)
{
	struct epoll_loop *loop = (struct epoll_loop *)source;
	const struct glue *glue;
	uint64_t count;

	(void)events;
	if (read(loop->timerfd, &count, sizeof(count)) != sizeof(count))
		return;
	for (glue = loop->glues; glue; glue = glue->next)
		process(glue);
}

static void epoll_init(struct epoll_loop *loop)
{
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	require(!source_watch(loop->epoll, loop->timerfd, &loop->timer), "epoll");
}

static void *epoll_new(void)
{
	static const struct itimerspec second = { { 1, 0 }, { 1, 0 } };
	struct epoll_loop *loop = calloc(1, sizeof(*loop));

	require(loop != NULL, "loop");
	loop->timer.ready = on_second;
	epoll_init(loop);
	timerfd_settime(loop->timerfd, 0, &second, NULL);
	return loop;
}

static void epoll_once(const struct epoll_loop *loop, int timeout)
{
	struct epoll_event events[AT_ONCE];
	int n = epoll_wait(loop->epoll, events, AT_ONCE, timeout);

	for (int i = 0; i < n; i++) {
		struct source *source = events[i].data.ptr;

		source->ready(source, events[i].events);
	}
}

static void epoll_run(void *arg)
{
	struct epoll_loop *loop = arg;

	loop->stopped = false;
	while (!loop->stopped)
		epoll_once(loop, -1);
}

static void epoll_stop(void *loop)
{
	((struct epoll_loop *)loop)->stopped = true;
}

static void epoll_turn(void *loop)
{
	epoll_once(loop, 0);
}

static void glue_ready(struct source *source, uint32_t events)
{
	(void)events;
	process((struct glue *)source);
}

static void *glue_attach(void *arg, struct ibv_context *ctx)
{
	struct epoll_loop *loop = arg;
	struct glue *glue = calloc(1, sizeof(*glue));

	if (!glue)
		return NULL;
	*glue = (struct glue){ { glue_ready }, loop, ctx, loop->glues };
	loop->glues = glue;
	return source_watch(loop->epoll, mlx5dv_vfio_get_events_fd(ctx), &glue->source) ? NULL
											: glue;
}

static void glue_detach(void *attached)
{
	struct glue *glue = attached;
	struct glue **link = &glue->loop->glues;

	while (*link != glue)
		link = &(*link)->next;
	*link = glue->next;
	epoll_ctl(glue->loop->epoll, EPOLL_CTL_DEL, mlx5dv_vfio_get_events_fd(glue->ctx), NULL);
	free(glue);
}

/* ---- By hand: poll(), woken in time for libmlx5 to check health ------------------------------ */

enum { MAX_POLLED = 256 };

struct hand_loop {
	struct ibv_context *ctx[MAX_POLLED];
	struct pollfd fds[MAX_POLLED];
	int count;
	int64_t next_second;
	bool stopped;
};

static struct hand_loop by_hand;

static int64_t now_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_MONOTONIC) / 1000000);
}

static void *hand_new(void)
{
	by_hand.next_second = now_ms() + 1000;
	return &by_hand;
}

static void *hand_attach(void *arg, struct ibv_context *ctx)
{
	struct hand_loop *loop = arg;

	loop->ctx[loop->count] = ctx;
	loop->fds[loop->count++] =
		(struct pollfd){ .fd = mlx5dv_vfio_get_events_fd(ctx), .events = POLLIN };
	return ctx;
}

static void hand_detach(void *ctx)
{
	int i = 0;

	while (by_hand.ctx[i] != ctx)
		i++;
	by_hand.ctx[i] = by_hand.ctx[--by_hand.count];
	by_hand.fds[i] = by_hand.fds[by_hand.count];
}

static void hand_process(struct ibv_context *ctx)
{
	int err = mlx5dv_vfio_process_events(ctx);

	if (err)
		fprintf(stderr, "process_events: %d\n", err);
}

static void hand_once(struct hand_loop *loop, bool wait)
{
	int64_t left = loop->next_second - now_ms();
	bool due = left <= 0;

	poll(loop->fds, (nfds_t)loop->count, due || !wait ? 0 : (int)left);
	for (int i = 0; i < loop->count; i++)
		if (due || loop->fds[i].revents)
			hand_process(loop->ctx[i]);
	if (due)
		loop->next_second += 1000;
}

static void hand_run(void *arg)
{
	struct hand_loop *loop = arg;

	loop->stopped = false;
	while (!loop->stopped)
		hand_once(loop, true);
}

static void hand_stop(void *loop)
{
	((struct hand_loop *)loop)->stopped = true;
}

static void hand_turn(void *loop)
{
	hand_once(loop, false);
}

/* ---- The dedicated thread ------------------------------------------------------------------- */

struct told {
	struct source source;
	int fd;
};

static void on_told(struct source *source, uint32_t events)
{
	eventfd_t count;

	(void)events;
	eventfd_read(((struct told *)source)->fd, &count);
	handed_over();
}

static void wake(void *told)
{
	eventfd_write(((struct told *)told)->fd, 1);
}

static void *thread_attach(void *loop, struct ibv_context *ctx)
{
	struct told *told = calloc(1, sizeof(*told));

	require(told != NULL, "told");
	told->source.ready = on_told;
	told->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	require(!source_watch(((struct epoll_loop *)loop)->epoll, told->fd, &told->source),
		"epoll");
	dedicated_thread(ctx, wake, told);
	return told;
}

/* ---- Ours in the same epoll loop ------------------------------------------------------------ */

struct ours {
	struct source source;
	struct ours_loop *loop;
	struct mlx5vfio *dev;
	int fd;
	int64_t timer_at; /* INT64_MAX: it does not run */
	struct ours *next;
};

struct ours_loop {
	struct epoll_loop common; /* its timerfd is set to the earliest timer */
	struct ours *all;
	int64_t timer_at;
};

static void ours_ready(struct source *source, uint32_t events)
{
	const struct ours *ours = (struct ours *)source;

	mlx5vfio_process(ours->dev, ours->fd, (int)events);
}

/* This program opens no event queues: a device has one fd. */
static int ours_watch(void *arg, int fd, int events)
{
	struct ours *ours = arg;
	int epoll = ours->loop->common.epoll;

	ours->fd = fd;
	if (events)
		return source_watch(epoll, fd, &ours->source) ? -errno : 0;
	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	return 0;
}

static void set_earliest(struct ours_loop *loop, int64_t at)
{
	struct itimerspec time = { .it_value = { at / 1000, at % 1000 * 1000000 } };

	loop->timer_at = at;
	timerfd_settime(loop->common.timerfd, TFD_TIMER_ABSTIME, &time, NULL);
}

static int ours_timer(void *arg, int timeout_ms)
{
	struct ours *ours = arg;

	ours->timer_at = timeout_ms < 0 ? INT64_MAX : now_ms() + timeout_ms;
	if (ours->timer_at < ours->loop->timer_at)
		set_earliest(ours->loop, ours->timer_at);
	return 0;
}

static void run_timers(struct source *source, uint32_t events)
{
	struct ours_loop *loop = (struct ours_loop *)source;
	int64_t now = now_ms(), earliest = INT64_MAX;
	struct ours *ours;

	(void)events;
	loop->timer_at = 0;
	for (ours = loop->all; ours; ours = ours->next) {
		if (ours->timer_at <= now) {
			ours->timer_at = INT64_MAX;
			mlx5vfio_process(ours->dev, -1, 0);
		}
		if (ours->timer_at < earliest)
			earliest = ours->timer_at;
	}
	set_earliest(loop, earliest);
}

static void ours_release(void *arg)
{
	struct ours *ours = arg;
	struct ours **link = &ours->loop->all;

	while (*link != ours)
		link = &(*link)->next;
	*link = ours->next;
	epoll_ctl(ours->loop->common.epoll, EPOLL_CTL_DEL, ours->fd, NULL);
	mlx5vfio_released(ours->dev);
	free(ours);
}

static const struct mlx5vfio_loop_ops ours_ops = {
	.name = "epoll",
	.watch = ours_watch,
	.timer = ours_timer,
	.release = ours_release,
};

static void *ours_attach(void *loop, struct ibv_context *ctx)
{
	struct ours *ours = calloc(1, sizeof(*ours));

	if (!ours)
		return NULL;
	ours->source.ready = ours_ready;
	ours->loop = loop;
	ours->dev = mlx5vfio_attach(ctx, &ours_ops, ours);
	ours->next = ours->loop->all;
	ours->loop->all = ours;
	return ours->dev;
}

static void ours_detach(void *attached)
{
	mlx5vfio_detach(attached);
}

static void *ours_new(void)
{
	struct ours_loop *loop = calloc(1, sizeof(*loop));

	require(loop != NULL, "loop");
	loop->timer_at = INT64_MAX;
	loop->common.timer.ready = run_timers;
	epoll_init(&loop->common);
	return loop;
}

/* ---- Ours polled ---------------------------------------------------------------------------- */

struct poll_loop {
	struct mlx5vfio *devs[MAX_POLLED];
	struct pollfd fds[MAX_POLLED];
	int count;
	bool stopped;
};

static struct poll_loop polled;

static void *poll_new(void)
{
	return &polled;
}

static void *poll_attach(void *loop, struct ibv_context *ctx)
{
	struct mlx5vfio *dev = mlx5vfio_attach(ctx, NULL, NULL);

	(void)loop;
	if (dev)
		polled.devs[polled.count++] = dev;
	return dev;
}

static void poll_detach(void *attached)
{
	int i = 0;

	while (polled.devs[i] != attached)
		i++;
	polled.devs[i] = polled.devs[--polled.count];
	mlx5vfio_detach(attached);
}

static void poll_once(struct poll_loop *loop, bool wait)
{
	int timeout = wait ? -1 : 0;

	for (int i = 0; i < loop->count; i++) {
		int left = mlx5vfio_timeout_ms(loop->devs[i]);

		loop->fds[i].fd = -1;
		mlx5vfio_pollfds(loop->devs[i], &loop->fds[i], 1);
		if (left >= 0 && (timeout < 0 || left < timeout))
			timeout = left;
	}
	poll(loop->fds, (nfds_t)loop->count, timeout);
	for (int i = 0; i < loop->count; i++) {
		if (loop->fds[i].revents)
			mlx5vfio_process(loop->devs[i], loop->fds[i].fd, loop->fds[i].revents);
		else if (!timeout)
			mlx5vfio_process(loop->devs[i], -1, 0);
	}
}

static void poll_run(void *arg)
{
	struct poll_loop *loop = arg;

	loop->stopped = false;
	while (!loop->stopped)
		poll_once(loop, true);
}

static void poll_stop(void *loop)
{
	((struct poll_loop *)loop)->stopped = true;
}

static void poll_turn(void *loop)
{
	poll_once(loop, false);
}

static const struct side sides[] = {
	{ "ours", true, ours_new, ours_attach, ours_detach, epoll_run, epoll_stop, epoll_turn },
	{ "poll", true, poll_new, poll_attach, poll_detach, poll_run, poll_stop, poll_turn },
	{ "hand-poll", false, hand_new, hand_attach, hand_detach, hand_run, hand_stop, hand_turn },
	{ "hand", false, epoll_new, glue_attach, glue_detach, epoll_run, epoll_stop, epoll_turn },
	{ "thread", false, epoll_new, thread_attach, NULL, epoll_run, epoll_stop, epoll_turn },
	{ 0 },
};

int main(int argc, char *argv[])
{
	return bench_main(argc, argv, sides);
}
