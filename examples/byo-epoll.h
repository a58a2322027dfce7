/* SPDX-License-Identifier: BSD-2-Clause */
/* Bring your own loop: a device behind one epoll fd, which any loop can watch like any other fd. */
#include <errno.h>
#include <mlx5vfio/core.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct host {
	int epoll, timer;
	struct mlx5vfio *dev; /* NULL: the device is gone, and the two fds are closed */
};

/* Stopping never fails: the fd may have been closed already. */
static int host_watch(void *loop, int fd, int events)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	int op = events ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;

	return epoll_ctl(((struct host *)loop)->epoll, op, fd, &event) && events ? -errno : 0;
}

/* A timerfd set to 0 stops, which is meant for -1; "now" is the next nanosecond. */
static int host_timer(void *loop, int timeout_ms)
{
	struct itimerspec in = { .it_value = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L } };

	if (timeout_ms <= 0)
		in.it_value.tv_nsec = timeout_ms == 0;
	return timerfd_settime(((struct host *)loop)->timer, 0, &in, NULL) ? -errno : 0;
}

static void host_release(void *loop)
{
	struct host *host = loop;
	struct mlx5vfio *dev = host->dev;

	close(host->epoll);
	close(host->timer);
	host->dev = NULL;
	mlx5vfio_released(dev);
}

/* When host->epoll is readable. One event a time: its handler may end the device and the rest. */
static int host_turn(const struct host *host)
{
	struct epoll_event event;
	uint64_t count;
	int n = epoll_wait(host->epoll, &event, 1, 0);

	if (n <= 0)
		return n == 0 || errno == EINTR ? 0 : -errno;
	if (event.data.fd != host->timer)
		return mlx5vfio_process(host->dev, event.data.fd, (int)event.events);
	if (read(host->timer, &count, sizeof(count)) < 0)
		return -errno;
	return mlx5vfio_process(host->dev, -1, 0);
}
