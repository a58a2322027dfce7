/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's thread: looks at every open device often while there is something to see, rarely else. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "clock.h"
#include "device.h"
#include "engine.h"
#include "object.h"
#include "real.h"
#include "report.h"
#include "script.h"
#include "server.h"
#include "settings.h"

enum {
	STACK_SIZE = 256 * 1024,
};

/*
 * How long to sleep between two looks: a store to memory wakes nobody. On a virtual machine a look costs
 * up to 50 us of a core, whatever it finds. After something came, commands that follow one another
 * within BUSY_FOR, as in an opening, are answered at once; one that comes after a pause waits for an
 * eighth of that pause, and never longer than IDLE_SLEEP. So late the health counter may be, too: it
 * moves every 10 ms, and IDLE_SLEEP stays well below that. An idle device is to cost less than 2 % of
 * a core.
 */
#define BUSY_SLEEP  (10 * NS_PER_US)
#define BUSY_FOR    (500 * NS_PER_US)
#define IDLE_SLEEP  (4 * NS_PER_MS)
#define IDLE_FACTOR 8 /* idle for that many times the sleep */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool started;
static atomic_bool stopping;
static bool running;
static pthread_t thread;
static int kick_fd = -1;

void engine_lock(void)
{
	pthread_mutex_lock(&lock);
}

void engine_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void engine_kick(void)
{
	uint64_t one = 1;

	if (kick_fd >= 0 && write(kick_fd, &one, sizeof(one)) < 0)
		return; /* full: it is on its way already */
}

static bool step_devices(uint64_t now, uint64_t *next, bool *open)
{
	bool busy = false;

	for (struct device *dev = devices_begin(); dev < devices_end(); dev++) {
		if (!dev->open)
			continue;
		*open = true;
		busy |= device_step(dev, now, next);
	}
	return busy;
}

static uint64_t sleep_for(uint64_t now, uint64_t last_busy)
{
	uint64_t idle = now - last_busy;
	uint64_t sleep = idle / IDLE_FACTOR;

	if (idle < BUSY_FOR)
		return BUSY_SLEEP;
	return sleep < IDLE_SLEEP ? sleep : IDLE_SLEEP;
}

/* One look at everything. Returns when to look again; UINT64_MAX: when woken. */
static uint64_t look(uint64_t *last_busy)
{
	uint64_t now, next = UINT64_MAX;
	bool open = false, busy;

	engine_lock();
	now = clock_now();
	script_run(now, &next);
	busy = step_devices(now, &next, &open);
	server_step(now, &next);
	engine_unlock();
	if (busy)
		*last_busy = now;
	if (open && now + sleep_for(now, *last_busy) < next)
		next = now + sleep_for(now, *last_busy);
	return next;
}

static void wait_until(uint64_t when)
{
	struct pollfd fds[1 + SERVER_FDS];
	uint64_t now = clock_now(), left = when > now ? when - now : 0, count;
	struct timespec timeout = { .tv_sec = (time_t)(left / NS_PER_S),
				    .tv_nsec = (long)(left % NS_PER_S) };
	int n;

	fds[0] = (struct pollfd){ .fd = kick_fd, .events = POLLIN };
	n = 1 + server_pollfds(fds + 1);
	if (ppoll(fds, (nfds_t)n, when == UINT64_MAX ? NULL : &timeout, NULL) <= 0)
		return;
	if (fds[0].revents & POLLIN && read(kick_fd, &count, sizeof(count)) < 0)
		return;
	/* Closed behind our back: polling it again would spin. */
	if (fds[0].revents & POLLNVAL)
		kick_fd = -1;
	engine_lock();
	server_serve(fds + 1, n - 1);
	engine_unlock();
}

static void *run(void *unused)
{
	uint64_t last_busy = clock_now();

	/* The default slack of 50 us would make short sleeps long. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	prctl(PR_SET_NAME, "mlx5vfio-sim");
	while (!atomic_load(&stopping))
		wait_until(look(&last_busy));
	return unused;
}

static bool start_thread(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	/* Too small for a program with large thread-local storage: the default then. */
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	error = pthread_create(&thread, &attr, run, NULL);
	if (error)
		error = pthread_create(&thread, NULL, run, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		report_line("cannot start the engine: error %d", error);
	return !error;
}

/* Nothing of the parent's simulation works in a forked child; it may start its own. */
static void forget_in_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	if (!atomic_load(&started))
		return;
	lock = fresh;
	running = false;
	atomic_store(&started, false);
	objects_forget();
	devices_forget();
	server_forget();
	script_forget();
	real()->close(kick_fd);
	kick_fd = -1;
}

static bool set_up(void)
{
	static bool registered;
	int fd;

	if (!registered)
		pthread_atfork(NULL, NULL, forget_in_child);
	registered = true;
	if (!devices_init(settings()->devices) || !objects_init())
		return false;
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0)
		return false;
	kick_fd = object_internal(fd);
	server_open();
	if (settings()->report)
		report_line("seed %llu", (unsigned long long)settings()->seed);
	script_start(clock_now());
	running = start_thread();
	return running;
}

bool engine_start(void)
{
	int saved = errno;

	if (atomic_load_explicit(&started, memory_order_acquire))
		return true;
	engine_lock();
	if (!atomic_load(&started) && !atomic_load(&stopping)) {
		if (!set_up())
			report_line("no simulated device: out of memory or threads");
		atomic_store(&started, true);
	}
	engine_unlock();
	errno = saved;
	return true;
}

/*
 * exit() may have been called by a signal handler in the midst of one of our calls. By trying, because
 * sanitizers do not know the lock with a time limit on the monotonic clock.
 */
static bool lock_with_patience(void)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };
	uint64_t until = clock_now() + NS_PER_S;

	while (pthread_mutex_trylock(&lock)) {
		if (clock_now() >= until)
			return false;
		real()->nanosleep(&pause, NULL);
	}
	return true;
}

/*
 * With no device open the thread is ended in good order, so that a leak checker finds nothing. Else
 * it must go on: what runs after us may still close a device.
 */
__attribute__((destructor)) static void finish(void)
{
	bool stop = true;

	if (!running || !lock_with_patience())
		return;
	for (struct device *dev = devices_begin(); dev < devices_end(); dev++) {
		if (!dev->open)
			continue;
		stop = false;
		device_refresh_stats(dev);
		report_device(dev, "left open");
	}
	atomic_store(&stopping, stop);
	engine_unlock();
	if (!stop)
		return;
	engine_kick();
	pthread_join(thread, NULL);
	running = false;
}
