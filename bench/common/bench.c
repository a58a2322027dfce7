/* SPDX-License-Identifier: BSD-2-Clause */
/* The measurements, the same for every loop and every side. Included by each program, once. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench.h"
#include "devices.c"

enum {
	BATCH = 2000,  /* events before the other side has its turn */
	BATCHES = 10,  /* of each side in a round */
	BURST = 40,    /* interrupts before the next side has its turn */
	BURSTS = 25,   /* of each side in a round */
	MAX_SIDES = 3, /* compared with each other in one run */
};

/* ---- Under the measurements ----------------------------------------------------------------- */

/* What a measurement wants to hear of: calls of libmlx5, whoever makes them. */
static void (*_Atomic on_call)(struct ibv_context *ctx);

static int (*process_events)(struct ibv_context *ctx);

static void __attribute__((constructor)) find_process_events(void)
{
	find_symbol(RTLD_NEXT, "mlx5dv_vfio_process_events", (void *)&process_events);
}

/* Stands before libmlx5's, for the library's calls and for those of the glue alike. */
int mlx5dv_vfio_process_events(struct ibv_context *ctx)
{
	void (*tell)(struct ibv_context * ctx) = on_call;

	if (tell)
		tell(ctx);
	return process_events(ctx);
}

static void pause_ns(int64_t ns)
{
	struct timespec time = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&time, NULL);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Opened by libmlx5 alone, which takes less time where there are hundreds. */
static struct ibv_context *device_open_plainly(unsigned dev)
{
	struct mlx5dv_vfio_context_attr attr = { 0 };
	struct ibv_device **list;
	struct ibv_context *ctx;
	char name[32];

	device_name(dev, name, sizeof(name));
	attr.pci_name = name;
	list = mlx5dv_get_vfio_device_list(&attr);
	require(list != NULL, name);
	ctx = ibv_open_device(list[0]);
	require(ctx != NULL, name);
	ibv_free_device_list(list);
	return ctx;
}

/*
 * Puts an eventfd that counts in the place of the events fd: N written is N interrupts, of which
 * every call takes one, so that a loop is busy without anybody else's help.
 */
static void device_make_countable(struct ibv_context *ctx)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);

	require(fd >= 0 && dup3(fd, mlx5dv_vfio_get_events_fd(ctx), O_CLOEXEC) >= 0, "eventfd");
	close(fd);
}

/* How often the main thread of a process has gone to sleep. */
static uint64_t times_slept(int pid)
{
	static const char key[] = "voluntary_ctxt_switches:";
	char path[64], line[128];
	uint64_t count = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, pid);
	status = fopen(path, "re");
	require(status != NULL, path);
	while (fgets(line, sizeof(line), status))
		if (!strncmp(line, key, sizeof(key) - 1))
			count = strtoull(line + sizeof(key) - 1, NULL, 10);
	fclose(status);
	return count;
}

struct dedicated {
	struct ibv_context *ctx;
	void (*tell)(void *arg);
	void *arg;
};

static void *dedicated_main(void *arg)
{
	const struct dedicated *self = arg;
	struct pollfd fd = { .fd = mlx5dv_vfio_get_events_fd(self->ctx), .events = POLLIN };

	while (poll(&fd, 1, -1) >= 0 || errno == EINTR) {
		mlx5dv_vfio_process_events(self->ctx);
		self->tell(self->arg);
	}
	return NULL;
}

static void dedicated_thread(struct ibv_context *ctx, void (*tell)(void *arg), void *arg)
{
	struct dedicated *self = malloc(sizeof(*self));
	pthread_t thread;

	require(self != NULL, "thread");
	*self = (struct dedicated){ ctx, tell, arg };
	require(!pthread_create(&thread, NULL, dedicated_main, self), "thread");
}

/* ---- Sides at work ---------------------------------------------------------------------------- */

struct bed {
	const struct side *side;
	void *loop;
	unsigned count;
	struct ibv_context **ctx;
	void **attached;
};

static struct bed *running;

static void bed_attach(struct bed *bed)
{
	for (unsigned i = 0; i < bed->count; i++) {
		bed->side->turn(bed->loop);
		bed->attached[i] = bed->side->attach(bed->loop, bed->ctx[i]);
		require(bed->attached[i] != NULL, "attach");
	}
}

static void bed_detach(struct bed *bed)
{
	for (unsigned i = 0; i < bed->count; i++)
		bed->side->detach(bed->attached[i]);
	bed->side->turn(bed->loop);
}

static struct ibv_context **open_devices(unsigned first, unsigned count,
					 struct ibv_context *(*open)(unsigned dev))
{
	struct ibv_context **ctx = calloc(count, sizeof(*ctx));

	require(ctx != NULL, "devices");
	for (unsigned i = 0; i < count; i++)
		ctx[i] = open(first + i);
	return ctx;
}

static struct bed bed_new(const struct side *side, struct ibv_context **ctx, unsigned count)
{
	struct bed bed = { .side = side, .loop = side->loop_new(), .count = count, .ctx = ctx };

	bed.attached = calloc(count + 1, sizeof(*bed.attached));
	require(bed.loop && bed.attached, "loop");
	return bed;
}

static void bed_run(struct bed *bed)
{
	running = bed;
	bed->side->run(bed->loop);
}

static void stop_running(void)
{
	running->side->stop(running->loop);
}

/* ---- Cost of an event ----------------------------------------------------------------------- */

static uint64_t calls_left;

static void count_call(struct ibv_context *ctx)
{
	(void)ctx;
	if (calls_left && !--calls_left)
		stop_running();
}

/* Every device has its share of the events ready at once, as in a storm. */
static double run_events(struct bed *bed, uint64_t events)
{
	uint64_t share = events / bed->count;
	uint64_t start;

	for (unsigned i = 0; i < bed->count; i++)
		eventfd_write(mlx5dv_vfio_get_events_fd(bed->ctx[i]), share);
	calls_left = share * bed->count;
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bed_run(bed);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / (double)(share * bed->count);
}

static struct ibv_context **open_countable(unsigned first, unsigned count)
{
	struct ibv_context **ctx = open_devices(first, count, device_open_plainly);

	for (unsigned i = 0; i < count; i++)
		device_make_countable(ctx[i]);
	return ctx;
}

/* The guard does not know the past of such a device: 50 calls end that. */
static struct bed bed_for_events(const struct side *side, struct ibv_context **ctx, unsigned count)
{
	struct bed bed = bed_new(side, ctx, count);

	bed_attach(&bed);
	run_events(&bed, 50 * count);
	return bed;
}

/* callgrind counts in here alone. */
static __attribute__((noinline)) void run_counted(struct bed *bed, uint64_t events)
{
	run_events(bed, events);
}

static void measure_instructions(const struct side *side, uint64_t events)
{
	struct bed bed;

	on_call = count_call;
	bed = bed_for_events(side, open_countable(0, 1), 1);
	run_counted(&bed, events);
}

static void cpu_round(struct bed beds[2], double ns[2])
{
	ns[0] = ns[1] = 0;
	for (int i = 0; i < 2 * BATCHES; i++) {
		/* ABBA, so that neither is always first */
		int which = (i & 1) ^ (i >> 1 & 1);

		ns[which] += run_events(&beds[which], BATCH) / BATCHES;
	}
}

/* Opening hundreds of devices takes long: then both sides have the same, each in its own loop. */
static void measure_cpu(const struct side *const sides[2], unsigned count, int rounds)
{
	struct ibv_context **ctx = open_countable(0, count);
	struct ibv_context **other = count > 16 ? ctx : open_countable(count, count);
	struct bed beds[2];
	double ns[2];

	on_call = count_call;
	for (unsigned i = 0; i < 2; i++)
		beds[i] = bed_for_events(sides[i], i ? other : ctx, count);
	cpu_round(beds, ns);
	while (rounds--) {
		cpu_round(beds, ns);
		printf("cpu %u %.1f %.1f\n", count, ns[0], ns[1]);
	}
}

/* ---- Latency -------------------------------------------------------------------------------- */

static _Atomic uint64_t sent_at;
static double arrivals[BURSTS * BURST];
static unsigned arrived_count;

static void arrived(void)
{
	uint64_t sent = atomic_exchange(&sent_at, 0);

	if (!sent)
		return;
	arrivals[arrived_count++] = (double)(clock_ns(CLOCK_MONOTONIC) - sent);
	if (arrived_count % BURST == 0)
		stop_running();
}

static void arrived_at_call(struct ibv_context *ctx)
{
	(void)ctx;
	arrived();
}

static void handed_over(void)
{
	arrived();
}

/* What VFIO does on an interrupt, at moments when the loop sleeps. */
static void *interrupt_main(void *fd)
{
	for (int i = 0; i < BURST; i++) {
		pause_ns(100000 + random() % 100000);
		atomic_store(&sent_at, clock_ns(CLOCK_MONOTONIC));
		eventfd_write(*(const int *)fd, 1);
		while (atomic_load(&sent_at))
			pause_ns(10000);
	}
	return NULL;
}

static void run_burst(struct bed *bed, double *out)
{
	int fd = mlx5dv_vfio_get_events_fd(bed->ctx[0]);
	pthread_t thread;

	arrived_count = 0;
	on_call = bed->side->detach ? arrived_at_call : NULL;
	require(!pthread_create(&thread, NULL, interrupt_main, &fd), "thread");
	bed_run(bed);
	pthread_join(thread, NULL);
	memcpy(out, arrivals, BURST * sizeof(*out));
}

static void latency_round(struct bed *beds, unsigned count, double out[][BURSTS * BURST])
{
	for (int burst = 0; burst < BURSTS; burst++)
		for (unsigned i = 0; i < count; i++)
			run_burst(&beds[i], &out[i][burst * BURST]);
	for (unsigned i = 0; i < count; i++)
		qsort(out[i], BURSTS * BURST, sizeof(double), compare_doubles);
}

static void measure_latency(const struct side *const sides[], unsigned count, int rounds)
{
	static double out[MAX_SIDES][BURSTS * BURST];
	struct bed beds[MAX_SIDES];

	for (unsigned i = 0; i < count; i++) {
		beds[i] = bed_new(sides[i], open_devices(i, 1, device_open), 1);
		bed_attach(&beds[i]);
	}
	while (rounds--) {
		latency_round(beds, count, out);
		for (int percent = 50; percent < 100; percent += 49) {
			printf("latency %d", percent);
			for (unsigned i = 0; i < count; i++)
				printf(" %.0f", out[i][BURSTS * BURST * percent / 100]);
			putchar('\n');
		}
	}
}

/* ---- Idle cost ------------------------------------------------------------------------------ */

static void *idle_main(void *rounds)
{
	int pid = (int)getpid();
	uint64_t before;

	pause_ns(1500000000);
	before = times_slept(pid);
	for (int i = 0; i < *(const int *)rounds; i++) {
		uint64_t now;

		pause_ns(1000000000);
		now = times_slept(pid);
		printf("%llu\n", (unsigned long long)(now - before));
		before = now;
	}
	exit(EXIT_SUCCESS);
}

/* Devices are put into the loop as each has been opened, milliseconds apart. */
static void measure_idle(const struct side *side, unsigned count, int rounds)
{
	struct bed bed = bed_new(side, NULL, 0);
	pthread_t thread;

	for (unsigned i = 0; i < count; i++) {
		struct ibv_context *ctx = device_open_plainly(i);

		side->turn(bed.loop);
		require(side->attach(bed.loop, ctx) != NULL, "attach");
	}
	require(!pthread_create(&thread, NULL, idle_main, &rounds), "thread");
	bed_run(&bed);
}

/* ---- Attach --------------------------------------------------------------------------------- */

static void attach_once(struct bed *bed, double *us, double *bytes)
{
	size_t before = mallinfo2().uordblks;
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	bed_attach(bed);
	*us = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1000 / bed->count;
	*bytes = (double)(mallinfo2().uordblks - before) / bed->count;
	bed_detach(bed);
}

static void measure_attach(const struct side *const sides[2], unsigned count, int rounds)
{
	struct ibv_context **ctx = open_devices(0, count, device_open_plainly);
	struct bed beds[2];
	double us[2], bytes[2];

	for (unsigned i = 0; i < 2; i++)
		beds[i] = bed_new(sides[i], ctx, count);
	for (int round = -1; round < rounds; round++) {
		for (unsigned i = 0; i < 2; i++)
			attach_once(&beds[i], &us[i], &bytes[i]);
		if (round < 0)
			continue;
		printf("attach %u %.2f %.2f\n", count, us[0], us[1]);
		printf("memory %u %.0f %.0f\n", count, bytes[0], bytes[1]);
	}
}

/* ---- Detection ------------------------------------------------------------------------------ */

static _Atomic uint64_t fault_at;

static void detected(void)
{
	char line[32];
	int length = snprintf(line, sizeof(line), "%llu\n",
			      (unsigned long long)(clock_ns(CLOCK_MONOTONIC) - fault_at) / 1000000);

	_exit(write(STDOUT_FILENO, line, (size_t)length) != length);
}

static void on_abort(int signal)
{
	(void)signal;
	detected();
}

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	(void)dev;
	(void)arg;
	if (health->fault)
		detected();
}

/* A moment that has nothing to do with anybody's timer. */
static void *fault_main(void *fault)
{
	pause_ns(1500000000 + random() % 1000000000);
	fault_at = clock_ns(CLOCK_MONOTONIC);
	device_control("%s 0", (const char *)fault);
	pause_ns(10000000000);
	puts("never");
	exit(EXIT_SUCCESS);
}

static void measure_detection(const struct side *side, char *fault)
{
	static const struct mlx5vfio_handlers handlers = { .health = on_health };
	struct bed bed = bed_new(side, open_devices(0, 1, device_open), 1);
	pthread_t thread;

	signal(SIGABRT, on_abort);
	bed_attach(&bed);
	if (side->ours)
		mlx5vfio_set_handlers(bed.attached[0], &handlers, NULL);
	require(!pthread_create(&thread, NULL, fault_main, fault), "thread");
	bed_run(&bed);
}

/* ---- What to measure ------------------------------------------------------------------------ */

static const struct side *find_side(const struct side *sides, const char *name)
{
	while (sides->name && strcmp(sides->name, name) != 0)
		sides++;
	return sides->name ? sides : NULL;
}

static int usage(const char *program)
{
	fprintf(stderr,
		"usage: %s instructions SIDE EVENTS | cpu SIDE,SIDE DEVICES ROUNDS |\n"
		"\tlatency SIDE,SIDE,SIDE ROUNDS | idle SIDE DEVICES ROUNDS |\n"
		"\tattach SIDE,SIDE DEVICES ROUNDS | detect SIDE FAULT\n",
		program);
	return 2;
}

static unsigned parse_sides(char *list, const struct side *all, const struct side *out[MAX_SIDES])
{
	unsigned count = 0;
	char *name;

	while ((name = strsep(&list, ",")) && count < MAX_SIDES) {
		out[count] = find_side(all, name);
		if (!out[count++])
			return 0;
	}
	return count;
}

static int bench_main(int argc, char *argv[], const struct side *all)
{
	const struct side *sides[MAX_SIDES];
	unsigned count = argc > 3 ? parse_sides(argv[2], all, sides) : 0;
	const char *what = argv[1];
	int last = count ? atoi(argv[argc - 1]) : 0;
	unsigned devices = count ? (unsigned)atoi(argv[3]) : 0;

	if (!count)
		return usage(argv[0]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	srandom((unsigned)getpid() ^ (unsigned)clock_ns(CLOCK_MONOTONIC));
	if (!strcmp(what, "instructions"))
		measure_instructions(sides[0], (uint64_t)last);
	else if (!strcmp(what, "cpu") && count == 2)
		measure_cpu(sides, devices, last);
	else if (!strcmp(what, "latency"))
		measure_latency(sides, count, last);
	else if (!strcmp(what, "idle"))
		measure_idle(sides[0], devices, last);
	else if (!strcmp(what, "attach") && count == 2)
		measure_attach(sides, devices, last);
	else if (!strcmp(what, "detect"))
		measure_detection(sides[0], argv[3]);
	else
		return usage(argv[0]);
	/* Closing hundreds of devices takes seconds and is not measured. */
	fflush(stdout);
	_exit(EXIT_SUCCESS);
}
