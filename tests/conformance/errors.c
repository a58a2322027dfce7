/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures are told once for each change, tried again at a bounded rate, and recovered from. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libmlx5.h"
#include "scenarios.h"
#include "subject.h"

static bool has_two_errors(void *arg)
{
	const struct subject *subject = arg;

	return subject->errors >= 2;
}

static bool has_three_errors(void *arg)
{
	const struct subject *subject = arg;

	return subject->errors >= 3;
}

/* Retries after 1, 10 and 100 ms, then at every tick. */
static void check_rate(struct subject *subject, int interval_ms)
{
	unsigned calls = libmlx5_calls();
	int64_t from = support_now_ms();
	int64_t elapsed;

	stage_run(subject->stage, 10 * interval_ms);
	elapsed = support_now_ms() - from;
	calls = libmlx5_calls() - calls;
	ck_assert_uint_ge(calls, 4);
	ck_assert_int_le((int64_t)calls, 3 + elapsed / interval_ms + 2);
}

void errors_of_libmlx5(const struct loop_driver *driver)
{
	const int interval_ms = 50;
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, interval_ms);
	libmlx5_fail(subject.ctx, EIO, 0, -1);
	support_sim("page-request 0 4");
	ck_assert(stage_until(&stage, subject_has_error, &subject));
	ck_assert_int_eq(subject.error, -EIO);
	check_rate(&subject, interval_ms);
	ck_assert_uint_eq(subject.errors, 1);
	ck_assert_uint_ge(subject_stats(&subject).retries, 4);

	libmlx5_fail(subject.ctx, -1, ENOMEM, -1);
	ck_assert(stage_until(&stage, has_two_errors, &subject));
	ck_assert_int_eq(subject.error, -ENOMEM);
	stage_run(&stage, 3 * interval_ms);
	ck_assert_uint_eq(subject.errors, 2);
	ck_assert_uint_eq(support_stats(0).pages_given, 0);

	libmlx5_heal();
	subject_until_given(&subject, 4);
	subject_until_ticks(&subject, subject_stats(&subject).ticks + 2);
	ck_assert_int_eq(mlx5vfio_set_interval(subject.dev, 0), 0);
	subject_post_event(&subject, 4); /* by the fd alone: it is watched again */
	subject_until_given(&subject, 8);
	ck_assert_uint_eq(subject.errors, 2);

	libmlx5_fail(subject.ctx, ENOMEM, 0, 1);
	support_sim("page-request 0 4");
	ck_assert(stage_until(&stage, has_three_errors, &subject));
	ck_assert_int_eq(subject.error, -ENOMEM);
	subject_until_given(&subject, 12); /* by the retry alone */
	ck_assert_uint_eq(subject.errors, 3);
	ck_assert_uint_eq(subject_stats(&subject).reports, 3);
	subject_end(&subject);
	stage_end(&stage);
}

/* The same with failures that are the device's and the system's own. */
void errors_of_firmware(const struct loop_driver *driver)
{
	const unsigned more_than_libmlx5_keeps = 8192;
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 50);
	support_sim("fail 0 108 0x6 1");
	support_sim("page-request 0 4");
	ck_assert(stage_until(&stage, subject_has_error, &subject));
	ck_assert_int_eq(subject.error, -EBUSY);
	support_sim("page-request 0 4");
	subject_until_given(&subject, 4);
	ck_assert_uint_eq(subject.errors, 1);

	support_sim("map-fail 0 1");
	support_sim("page-request 0 %u", more_than_libmlx5_keeps);
	ck_assert(stage_until(&stage, has_two_errors, &subject));
	ck_assert_int_eq(subject.error, -ENOMEM);
	support_sim("page-request 0 4");
	subject_until_given(&subject, 8);
	ck_assert_uint_eq(subject.errors, 2);
	subject_end(&subject);
	stage_end(&stage);
}

static bool called_thrice(void *arg)
{
	return subject_stats(arg).calls >= 3;
}

void errors_interrupted_call(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 0);
	libmlx5_fail(subject.ctx, -1, EINTR, 2);
	support_sim("page-request 0 4");
	ck_assert(stage_until(&stage, called_thrice, &subject));
	subject_until_given(&subject, 4);
	ck_assert_uint_eq(subject.errors, 0);
	subject_end(&subject);
	stage_end(&stage);
}

void errors_closed_fd(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	unsigned calls;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, 10);
	subject_until_ticks(&subject, 1);
	close(subject.fd);
	ck_assert(stage_until(&stage, subject_has_error, &subject));
	ck_assert_int_eq(subject.error, -EBADF);
	calls = libmlx5_calls();
	stage_run(&stage, 50);
	ck_assert_uint_eq(libmlx5_calls(), calls);
	ck_assert_uint_eq(subject.errors, 1);
	stage_check_others(&stage);
	subject_detach(&subject);
	ck_assert_int_eq(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), subject.fd);
	subject_close(&subject);
	subject_expect_detached(&subject);
	stage_end(&stage);
}

/* Puts another file under the device's fd before it is attached; returns what was there. */
static int replace_fd(const struct subject *subject, int with)
{
	int saved = fcntl(subject->fd, F_DUPFD_CLOEXEC, 0);

	ck_assert_int_ge(saved, 0);
	ck_assert_int_eq(dup3(with, subject->fd, O_CLOEXEC), subject->fd);
	close(with);
	return saved;
}

static void end_with_fd(struct subject *subject, int saved)
{
	subject_detach(subject);
	ck_assert_int_eq(dup3(saved, subject->fd, O_CLOEXEC), subject->fd);
	close(saved);
	subject_close(subject);
	subject_expect_detached(subject);
}

/* A socket with an error in its queue: poll says POLLERR without POLLIN, for ever. */
static int socket_with_error(void)
{
	struct sockaddr_in nobody = { .sin_family = AF_INET,
				      .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(nobody);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd pollfd = { .fd = fd };
	int on = 1, taken = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int error;

	/* a port that was taken a moment ago and is free now */
	ck_assert_int_eq(bind(taken, (struct sockaddr *)&nobody, size), 0);
	ck_assert_int_eq(getsockname(taken, (struct sockaddr *)&nobody, &size), 0);
	close(taken);
	ck_assert_int_eq(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&nobody, size), 0);
	ck_assert_int_eq((int)send(fd, "x", 1, 0), 1);
	ck_assert_int_eq(poll(&pollfd, 1, 10000), 1);
	ck_assert_int_eq(pollfd.revents, POLLERR);
	/* reading must not fail with it: that would be another error */
	size = sizeof(error);
	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	return fd;
}

void errors_on_fd(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	uint64_t ticks;
	int saved;

	stage_begin(&stage, driver);
	subject_open(&subject, &stage, 0);
	saved = replace_fd(&subject, socket_with_error());
	subject_attach(&subject, 10);
	ck_assert(stage_until(&stage, subject_has_error, &subject));
	ck_assert_int_eq(subject.error, -EIO);
	ticks = subject_stats(&subject).ticks;
	support_sim("page-request 0 4");
	subject_until_given(&subject, 4); /* by the tick */
	subject_until_ticks(&subject, ticks + 3);
	ck_assert_uint_eq(subject.errors, 1);
	end_with_fd(&subject, saved);
	stage_end(&stage);
}

/* The write end of a pipe that nobody reads: an error to every loop, whatever it calls it. */
void errors_on_fd_do_not_spin(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	uint64_t calls;
	int ends[2], saved;
	int64_t from;

	stage_begin(&stage, driver);
	subject_open(&subject, &stage, 0);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	close(ends[0]);
	saved = replace_fd(&subject, ends[1]);
	subject_attach(&subject, 10);
	from = support_now_ms();
	ck_assert(stage_until(&stage, subject_has_error, &subject));
	stage_run(&stage, 200);
	calls = subject_stats(&subject).calls;
	ck_assert_int_le((int64_t)calls, 6 + (support_now_ms() - from) / 10);
	ck_assert_uint_le(subject_stats(&subject).wakeups, 2);
	/* the loop's word for it, and then libmlx5's, which cannot read there */
	ck_assert_uint_le(subject.errors, 2);
	stage_check_others(&stage);
	end_with_fd(&subject, saved);
	stage_end(&stage);
}
