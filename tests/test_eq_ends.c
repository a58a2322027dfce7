/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 1; tsan valgrind timeout=200 */
/*
 * Every way in which an event queue ends: closed, from inside its own handler too, together with
 * its device, by the device's death, by an overrun, without its loop.
 */
#include <time.h>

#include "test_eq.h"

#define PORT BIT(MLX5VFIO_EVENT_PORT_STATE_CHANGE)
#define MANY 8

/* ms in which a call that does not wait for the device returns, on a busy machine too */
#define AT_ONCE 500

enum deed { DO_NOTHING, CLOSE_QUEUE, CLOSE_OTHER, DETACH, CLOSE_DEVICE };

struct queue {
	struct test_loop *loop;
	struct mlx5vfio_eq *eq, *other;
	enum deed deed;
	int count, overruns;
};

static void act(struct queue *queue)
{
	switch (queue->deed) {
	case CLOSE_QUEUE:
		mlx5vfio_eq_close(queue->eq);
		ck_assert_uint_ne(mlx5vfio_eq_number(queue->eq), 0);
		break;
	case CLOSE_OTHER:
		mlx5vfio_eq_close(queue->other);
		break;
	case DETACH:
		mlx5vfio_detach(queue->loop->dev);
		break;
	case CLOSE_DEVICE:
		ck_assert_int_eq(mlx5vfio_close(queue->loop->dev), 0);
		break;
	case DO_NOTHING:
		break;
	}
}

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	struct queue *queue = arg;

	ck_assert_ptr_eq(eq, queue->eq);
	queue->count++;
	queue->overruns += event->type == MLX5VFIO_EVENT_QUEUE_OVERRUN;
	act(queue);
}

static void open_queue(struct queue *queue, struct test_loop *loop, unsigned log_size)
{
	*queue = (struct queue){ .loop = loop };
	queue->eq = test_eq_open(loop, log_size, 0, PORT, on_event, queue);
}

static void several_events(void)
{
	int i;

	for (i = 0; i < MANY; i++)
		support_sim("port 0 %s", i % 2 ? "up" : "down");
}

/* In the first of several events. The rest is never heard of. */
START_TEST(close_in_handler)
{
	struct test_loop loop;
	struct queue queue;
	int fds;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	fds = support_open_fds();
	open_queue(&queue, &loop, 0);
	queue.deed = CLOSE_QUEUE;
	several_events();
	test_turn_until(&loop, &queue.count, 1);
	test_turn_for(&loop, TEST_SILENCE);
	ck_assert_int_eq(queue.count, 1);
	ck_assert_int_eq(support_open_fds(), fds);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

/* Two queues with events, and the handler of whichever comes first closes the other. */
START_TEST(close_another_in_handler)
{
	struct queue queues[2];
	struct test_loop loop;
	int i;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	for (i = 0; i < 2; i++)
		open_queue(&queues[i], &loop, 0);
	for (i = 0; i < 2; i++)
		queues[i].other = queues[!i].eq;
	queues[0].deed = queues[1].deed = CLOSE_OTHER;
	support_sim("port 0 up");
	while (!queues[0].count && !queues[1].count)
		test_turn(&loop, 10);
	queues[0].deed = queues[1].deed = DO_NOTHING;
	test_turn_for(&loop, TEST_SILENCE);
	ck_assert_int_eq(queues[0].count + queues[1].count, 1);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

/* The same fd number, closed and opened within one turn, is another queue's. */
START_TEST(again_and_again)
{
	struct test_loop loop;
	struct queue queue;
	int i, fds = 0;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	for (i = 0; i < support_rounds(200); i++) {
		open_queue(&queue, &loop, 4);
		support_sim("port 0 up");
		test_turn_until(&loop, &queue.count, 1);
		mlx5vfio_eq_close(queue.eq);
		if (!i)
			fds = support_open_fds();
	}
	ck_assert_int_eq(support_open_fds(), fds);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

START_TEST(detach_in_handler)
{
	struct queue queue, second;
	struct test_loop loop;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	open_queue(&queue, &loop, 0);
	open_queue(&second, &loop, 4);
	queue.deed = second.deed = DETACH;
	several_events();
	test_turn_until(&loop, &loop.detached, 1);
	test_turn_for(&loop, TEST_SILENCE);
	ck_assert_int_eq(queue.count + second.count, 1);
	test_close(&loop);
	test_loop_end(&loop);
	ck_assert_uint_eq(support_stats(0).violations, 0);
	ck_assert_uint_eq(support_stats(0).dma_maps, 0);
}
END_TEST

/* mlx5vfio_close() takes the queues along to its thread. */
START_TEST(close_device_in_handler)
{
	struct queue queue, second;
	struct test_loop loop;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	open_queue(&queue, &loop, 0);
	open_queue(&second, &loop, 4);
	queue.deed = second.deed = CLOSE_DEVICE;
	several_events();
	test_turn_until(&loop, &loop.detached, 1);
	ck_assert_int_eq(loop.closed, 1);
	ck_assert_int_eq(queue.count + second.count, 1);
	test_loop_end(&loop);
	ck_assert_uint_eq(support_stats(0).violations, 0);
	ck_assert_uint_eq(support_stats(0).dma_maps, 0);
}
END_TEST

START_TEST(close_device_with_queues)
{
	struct queue queues[3];
	struct test_loop loop;
	int64_t start;
	int i;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	for (i = 0; i < 3; i++)
		open_queue(&queues[i], &loop, 4);
	several_events();
	start = support_now_ms();
	ck_assert_int_eq(mlx5vfio_close(loop.dev), 0);
	ck_assert_int_lt(support_now_ms() - start, AT_ONCE);
	test_turn_until(&loop, &loop.detached, 1);
	ck_assert_int_eq(loop.closed, 1);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(queues[i].count, 0);
	test_loop_end(&loop);
	ck_assert_uint_eq(support_stats(0).violations, 0);
}
END_TEST

/* Nobody has noticed that firmware hangs: the helper waits, the loop does not. */
START_TEST(close_device_that_hangs)
{
	struct test_loop loop;
	struct queue queue;
	int64_t start;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	open_queue(&queue, &loop, 4);
	support_sim("hang 0");
	start = support_now_ms();
	ck_assert_int_eq(mlx5vfio_close(loop.dev), 0);
	test_turn_for(&loop, 100);
	ck_assert_int_lt(support_now_ms() - start, 100 + AT_ONCE);
	ck_assert_int_eq(loop.closed, 0);
	support_sim("unhang 0");
	test_turn_until(&loop, &loop.detached, 1);
	ck_assert_int_eq(loop.closed, 1);
	test_loop_end(&loop);
}
END_TEST

static const char *const deaths[] = { "fatal 0", "nic-disabled 0", "pci-offline 0" };

#define DEATHS (int)(sizeof(deaths) / sizeof(deaths[0]))

/* After the fault no event comes, whatever is in the queue; closing does not ask the device. */
START_TEST(device_death)
{
	struct test_loop loop;
	struct queue queue;
	int64_t start;
	int count;

	test_loop_start(&loop, (enum test_loop_kind)(_i % LOOP_KINDS), 0);
	mlx5vfio_set_interval(loop.dev, 20);
	open_queue(&queue, &loop, 0);
	support_sim("port 0 up");
	test_turn_until(&loop, &queue.count, 1);
	support_sim("%s", deaths[_i / LOOP_KINDS]);
	test_turn_until(&loop, &loop.faults, 1);
	count = queue.count;
	if (strncmp(deaths[_i / LOOP_KINDS], "pci", 3))
		several_events();
	support_sim("spurious 0 1");
	test_turn_for(&loop, TEST_SILENCE);
	ck_assert_int_eq(queue.count, count);
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, NULL, 0), 0);
	support_sim("hang 0");
	start = support_now_ms();
	mlx5vfio_eq_close(queue.eq);
	mlx5vfio_detach(loop.dev);
	ck_assert_int_lt(support_now_ms() - start, AT_ONCE);
	test_turn(&loop, 1);
	support_sim("heal 0");
	test_close(&loop);
	test_loop_end(&loop);
}
END_TEST

static void expect_overrun(struct test_loop *loop, struct queue *queue)
{
	test_turn_until(loop, &queue->overruns, 1);
	test_turn_for(loop, TEST_SILENCE);
	ck_assert_int_eq(queue->overruns, 1);
}

/* The entries are written over, at any place of the queue. */
START_TEST(overrun_by_force)
{
	struct queue queue, other;
	struct test_loop loop;
	int before = _i / LOOP_KINDS * 3;

	test_loop_start(&loop, (enum test_loop_kind)(_i % LOOP_KINDS), 0);
	open_queue(&queue, &loop, 4);
	if (before)
		support_sim("port 0 up %d", before);
	test_turn_until(&loop, &queue.count, before);
	open_queue(&other, &loop, 4);
	support_sim("overrun 0 %u", mlx5vfio_eq_number(queue.eq));
	expect_overrun(&loop, &queue);
	support_sim("port 0 up");
	test_turn_until(&loop, &other.count, 1);
	ck_assert_int_eq(other.overruns, 0);
	mlx5vfio_eq_close(queue.eq);
	test_loop_finish(&loop, 0, 1);
}
END_TEST

/* The old entries are kept and handed out, what came later is lost: firmware says so. */
START_TEST(overrun_by_neglect)
{
	struct queue queue, other;
	struct test_loop loop;
	int i;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	open_queue(&queue, &loop, 4);
	for (i = 0; i < 17; i++)
		support_sim("port 0 up");
	expect_overrun(&loop, &queue);
	ck_assert_int_eq(queue.count, 16 + 1);
	/* The device has other queues, which go on. */
	open_queue(&other, &loop, 4);
	support_sim("port 0 up");
	test_turn_until(&loop, &other.count, 1);
	test_turn_for(&loop, TEST_SILENCE);
	ck_assert_int_eq(other.overruns, 0);
	test_loop_finish(&loop, 0, 1);
}
END_TEST

/* The device's health says for good that some queue has overrun. This one was only full. */
START_TEST(overrun_of_another)
{
	struct queue queue, full;
	struct test_loop loop;
	int i;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	mlx5vfio_set_interval(loop.dev, 20);
	open_queue(&queue, &loop, 4);
	for (i = 0; i < 17; i++)
		support_sim("port 0 up");
	expect_overrun(&loop, &queue);
	open_queue(&full, &loop, 4);
	for (i = 0; i < 16; i++)
		support_sim("port 0 up");
	test_turn_until(&loop, &full.count, 16);
	test_turn_for(&loop, 1100); /* until it is no longer asked about */
	support_sim("port 0 up");
	test_turn_until(&loop, &full.count, 17);
	ck_assert_int_eq(full.overruns, 0);
	for (i = 0; i < 17; i++)
		support_sim("port 0 up");
	expect_overrun(&loop, &full);
	ck_assert_int_eq(full.count, 17 + 16 + 1);
	test_loop_finish(&loop, 0, 2);
}
END_TEST

/* Full to the last entry is no overrun. */
START_TEST(full_queue)
{
	struct test_loop loop;
	struct queue queue;
	int round, i;

	test_loop_start(&loop, (enum test_loop_kind)_i, 0);
	open_queue(&queue, &loop, 4);
	for (round = 1; round <= 20; round++) {
		for (i = 0; i < 16; i++)
			support_sim("port 0 up");
		test_turn_until(&loop, &queue.count, round * 16);
		test_turn_for(&loop, 5);
	}
	ck_assert_int_eq(queue.overruns, 0);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

/* The loop is gone without a detach: nothing of it is touched. */
START_TEST(forget)
{
	struct test_loop loop;
	struct queue queue;

	test_loop_start(&loop, LOOP_POLL, 0);
	open_queue(&queue, &loop, 4);
	several_events();
	mlx5vfio_forget(loop.dev);
	ck_assert_int_eq(loop.detached, 1);
	ck_assert_int_eq(queue.count, 0);
	test_close(&loop);
	test_loop_end(&loop);
	ck_assert_uint_eq(support_stats(0).violations, 0);
}
END_TEST

/* Polling by hand: an fd for each queue and the device's. */
START_TEST(pollfds)
{
	struct queue queues[3];
	struct pollfd fds[4];
	struct test_loop loop;
	int i, j;

	test_loop_start(&loop, LOOP_POLL, 0);
	for (i = 0; i < 3; i++)
		open_queue(&queues[i], &loop, 4);
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, NULL, 0), 4);
	fds[2].fd = fds[3].fd = -7;
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, fds, 2), 4);
	ck_assert_int_eq(fds[2].fd, -7);
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, fds, 4), 4);
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(fds[i].events, POLLIN);
		for (j = 0; j < i; j++)
			ck_assert_int_ne(fds[i].fd, fds[j].fd);
	}
	mlx5vfio_eq_close(queues[1].eq);
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, fds, 4), 3);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

/* The queue's fd: that which a device without queues does not have. */
static int queue_fd(const struct test_loop *loop)
{
	struct pollfd fds[2];
	int own = mlx5dv_vfio_get_events_fd(loop->ctx);

	ck_assert_int_eq(mlx5vfio_pollfds(loop->dev, fds, 2), 2);
	return fds[0].fd == own ? fds[1].fd : fds[0].fd;
}

/* The loop cannot watch it: told once, and the tick hands out what comes. */
START_TEST(error_on_the_fd)
{
	struct test_loop loop;
	struct queue queue;
	int fd;

	test_loop_start(&loop, LOOP_POLL, 0);
	mlx5vfio_set_interval(loop.dev, 20);
	open_queue(&queue, &loop, 4);
	fd = queue_fd(&loop);
	ck_assert_int_eq(mlx5vfio_process(loop.dev, fd, POLLERR), 0);
	ck_assert_int_eq(loop.errors, 1);
	ck_assert_int_eq(loop.error, -EIO);
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, NULL, 0), 1);
	ck_assert_int_eq(mlx5vfio_process(loop.dev, fd, POLLERR), 0);
	several_events();
	ck_assert_int_eq(mlx5vfio_process(loop.dev, fd, POLLIN), 0);
	ck_assert_int_eq(queue.count, 0);
	test_turn_until(&loop, &queue.count, MANY);
	ck_assert_int_eq(loop.errors, 1);
	test_loop_finish(&loop, 0, 0);
}
END_TEST

/* The doorbell went with the ctx: whatever the loop says of the fd, nothing is touched. */
START_TEST(ctx_closed_under_us)
{
	static const int revents[] = { POLLIN, POLLERR, POLLNVAL };
	struct test_loop loop;
	struct queue queue;
	int fd;

	test_loop_start(&loop, LOOP_POLL, 0);
	open_queue(&queue, &loop, 4);
	fd = queue_fd(&loop);
	test_close(&loop);
	ck_assert_int_eq(mlx5vfio_process(loop.dev, fd, revents[_i]), 0);
	ck_assert_int_eq(loop.errors, 1);
	ck_assert_int_eq(loop.error, -EBADF);
	ck_assert_int_eq(queue.count, 0);
	ck_assert_int_eq(mlx5vfio_pollfds(loop.dev, NULL, 0), 0);
	ck_assert_int_eq(mlx5vfio_timeout_ms(loop.dev), -1);
	mlx5vfio_eq_close(queue.eq);
	mlx5vfio_detach(loop.dev);
	test_loop_end(&loop);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("eq ends");
	TCase *tcase = tcase_create("ends");

	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, NULL, test_clean_up);
	tcase_add_loop_test(tcase, close_in_handler, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, close_another_in_handler, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, again_and_again, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, detach_in_handler, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, close_device_in_handler, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, close_device_with_queues, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, close_device_that_hangs, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, device_death, 0, DEATHS * LOOP_KINDS);
	tcase_add_loop_test(tcase, overrun_by_force, 0, 6 * LOOP_KINDS);
	tcase_add_loop_test(tcase, overrun_by_neglect, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, overrun_of_another, 0, LOOP_KINDS);
	tcase_add_loop_test(tcase, full_queue, 0, LOOP_KINDS);
	tcase_add_test(tcase, forget);
	tcase_add_test(tcase, pollfds);
	tcase_add_test(tcase, error_on_the_fd);
	tcase_add_loop_test(tcase, ctx_closed_under_us, 0, 3);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}
