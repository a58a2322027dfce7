/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching, being refused, and the end of the memory. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "scenarios.h"
#include "subject.h"

void attach_detach_at_once(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&subject, &stage, 0, MLX5VFIO_DEFAULT_INTERVAL);
	ck_assert_ptr_eq(mlx5vfio_context(subject.dev), subject.ctx);
	subject_end(&subject);
	subject_begin(&subject, &stage, 0, 10);
	subject_until_ticks(&subject, 2);
	subject_end(&subject);
	ck_assert_uint_eq(subject.errors + subject.healths, 0);
	stage_end(&stage);
}

void attach_many_rounds(const struct loop_driver *driver)
{
	int rounds = support_rounds(1000);
	struct subject subject;
	struct stage stage;
	int fds;

	stage_begin(&stage, driver);
	subject_open(&subject, &stage, 0);
	fds = support_open_fds();
	for (int i = 0; i < rounds; i++) {
		subject.detached = 0;
		subject_attach(&subject, MLX5VFIO_DEFAULT_INTERVAL);
		if (i % 2)
			driver->turn(stage.loop, 0);
		subject_detach(&subject);
		subject_expect_detached(&subject);
	}
	ck_assert_int_eq(support_open_fds(), fds);
	subject_close(&subject);
	stage_end(&stage);
}

void attach_reopened_device(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;
	int i;

	stage_begin(&stage, driver);
	for (i = 0; i < support_rounds(50); i++) {
		subject_begin(&subject, &stage, 0, 10);
		subject_post_event(&subject, 4);
		subject_until_given(&subject, 4);
		subject_end(&subject);
	}
	stage_end(&stage);
}

void attach_fd_number_reused(const struct loop_driver *driver)
{
	struct subject first, second;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&first, &stage, 0, 10);
	subject_post_event(&first, 4);
	subject_detach(&first);
	subject_close(&first);
	/* no turn: what is pending for the old number must not reach its old watcher, nor the new */
	subject_begin(&second, &stage, 1, 0);
	ck_assert_int_eq(second.fd, first.fd);
	subject_post_event(&second, 4);
	subject_until_given(&second, 4);
	ck_assert_uint_eq(first.errors + first.healths + second.errors, 0);
	subject_expect_detached(&first);
	subject_end(&second);
	stage_end(&stage);
}

static void refuse(const struct stage *stage, void *loop, struct ibv_context *ctx, int error)
{
	errno = 0;
	ck_assert_ptr_null(stage->driver->attach(loop, ctx));
	ck_assert_int_eq(errno, error);
}

void attach_wrong_ctx(const struct loop_driver *driver)
{
	/* libmlx5 asks what driver a device belongs to behind its public part: room for that */
	static union {
		struct ibv_device device;
		char room[4096];
	} foreign;
	struct ibv_context ctx = { .device = &foreign.device };
	struct stage stage;

	stage_begin(&stage, driver);
	refuse(&stage, stage.loop, NULL, EINVAL);
	refuse(&stage, stage.loop, &ctx, EOPNOTSUPP);
	stage_end(&stage);
}

void attach_null_loop(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_open(&subject, &stage, 0);
	refuse(&stage, NULL, subject.ctx, EINVAL);
	subject_attach(&subject, 10);
	subject_end(&subject);
	stage_end(&stage);
}

void attach_closed_fd(const struct loop_driver *driver)
{
	struct subject subject;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_open(&subject, &stage, 0);
	close(subject.fd);
	refuse(&stage, stage.loop, subject.ctx, EBADF);
	/* libmlx5 is to close an fd of its own, not somebody else's */
	ck_assert_int_eq(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), subject.fd);
	subject_close(&subject);
	stage_end(&stage);
}

void attach_twice(const struct loop_driver *driver)
{
	struct stage stage, elsewhere;
	struct subject subject;

	stage_begin(&stage, driver);
	stage_begin(&elsewhere, driver);
	subject_begin(&subject, &stage, 0, 10);
	refuse(&stage, stage.loop, subject.ctx, EBUSY);
	refuse(&elsewhere, elsewhere.loop, subject.ctx, EBUSY);
	subject_post_event(&subject, 4);
	subject_until_given(&subject, 4);
	subject_end(&subject);
	ck_assert_uint_eq(subject.errors, 0);
	stage_end(&elsewhere);
	stage_end(&stage);
}

struct block {
	struct block *next;
};

/* Takes memory until what was at place is taken, so that the next ctx is somewhere else. */
static struct block *occupy(const void *place, size_t size)
{
	struct block *blocks = NULL;
	uintptr_t from;
	int tries;

	for (tries = 0; tries < 10000; tries++) {
		struct block *block = malloc(size);

		ck_assert_ptr_nonnull(block);
		block->next = blocks;
		blocks = block;
		from = (uintptr_t)block;
		if ((uintptr_t)place >= from && (uintptr_t)place < from + size)
			break;
	}
	return blocks;
}

static void give_back(struct block *blocks)
{
	while (blocks) {
		struct block *next = blocks->next;

		free(blocks);
		blocks = next;
	}
}

void attach_fd_of_another(const struct loop_driver *driver)
{
	struct mlx5vfio_stats before, after;
	struct subject first, second;
	const struct ibv_context *ctx;
	struct block *blocks;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&first, &stage, 0, 0);
	ctx = first.ctx;
	mlx5vfio_set_guard(first.dev, false); /* nothing is in the way of a call */
	mlx5vfio_process(first.dev, first.fd, POLLIN);
	subject_close(&first); /* the mistake: no detach before */
	blocks = occupy(ctx, sizeof(*ctx) * 4);
	subject_open(&second, &stage, 1);
	give_back(blocks);
	ck_assert_ptr_ne(second.ctx, ctx); /* or else it would be refused for another reason */
	ck_assert_int_eq(second.fd, first.fd);
	refuse(&stage, stage.loop, second.ctx, EBUSY);
	mlx5vfio_get_stats(first.dev, &before, sizeof(before));
	mlx5vfio_process(first.dev, first.fd, POLLIN); /* a turn that had begun */
	mlx5vfio_get_stats(first.dev, &after, sizeof(after));
	ck_assert_uint_eq(after.calls, before.calls);
	subject_detach(&first);
	subject_attach(&second, 10);
	subject_post_event(&second, 4);
	subject_until_given(&second, 4);
	subject_expect_detached(&first);
	subject_end(&second);
	stage_end(&stage);
}

void attach_forget(const struct loop_driver *driver)
{
	struct subject served, untouched;
	struct stage stage;

	stage_begin(&stage, driver);
	subject_begin(&served, &stage, 0, 10);
	subject_until_ticks(&served, 1);
	subject_begin(&untouched, &stage, 1, 10);
	stage_alone(&stage);
	driver->wreck(stage.loop);
	subject_forget(&served);
	subject_forget(&untouched);
	mlx5vfio_forget(NULL);
	ck_assert_uint_eq(served.detached, 1);
	ck_assert_uint_eq(untouched.detached, 1);
	subject_close(&served);
	subject_close(&untouched);
	stage_end_without_loop(&stage);
}
