/* SPDX-License-Identifier: BSD-2-Clause */
/* sim: --devices 4; show light seconds=9 */
/*
 * A loop that its own application keeps from turning for five seconds, with three devices on it: the
 * healthy one is not accused for it, and what froze before or meanwhile is found soon after.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include <mlx5vfio/uv.h>

#include "support/support.h"

#define BLOCK_MS 5000

enum { HEALTHY, FROZEN_BEFORE, FROZEN_MEANWHILE, DEVICES };

static struct {
	uv_loop_t loop;
	uv_timer_t freeze, begin, end;
	uv_async_t block;
	int64_t resumed;
	struct patient {
		struct ibv_context *ctx;
		struct mlx5vfio *dev;
		int told;
		int64_t told_at;
		enum mlx5vfio_fault fault;
	} patients[DEVICES];
} blocked;

static void on_patient_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct patient *patient = arg;

	(void)dev;
	patient->told++;
	patient->told_at = support_now_ms();
	patient->fault = health->fault;
}

static void freeze_before(uv_timer_t *timer)
{
	(void)timer;
	support_sim("freeze %d", FROZEN_BEFORE);
}

/*
 * libuv takes the time once a turn, before its timers: one of those that blocks would make it sleep
 * on by the old time. The application blocks where it serves its own events.
 */
static void block(uv_async_t *async)
{
	(void)async;
	usleep(BLOCK_MS * 1000 / 2);
	support_sim("freeze %d", FROZEN_MEANWHILE);
	usleep(BLOCK_MS * 1000 / 2);
	blocked.resumed = support_now_ms();
}

static void begin_block(uv_timer_t *timer)
{
	(void)timer;
	uv_async_send(&blocked.block);
}

static void end_blocked(uv_timer_t *timer)
{
	int i;

	for (i = 0; i < DEVICES; i++)
		mlx5vfio_detach(blocked.patients[i].dev);
	uv_close((uv_handle_t *)&blocked.freeze, NULL);
	uv_close((uv_handle_t *)&blocked.begin, NULL);
	uv_close((uv_handle_t *)&blocked.block, NULL);
	uv_close((uv_handle_t *)timer, NULL);
}

static void admit(int number)
{
	static const struct mlx5vfio_handlers in_loop = { .health = on_patient_health };
	struct patient *patient = &blocked.patients[number];

	patient->ctx = support_open((unsigned)number);
	patient->dev = mlx5vfio_uv_attach(&blocked.loop, patient->ctx);
	ck_assert_ptr_nonnull(patient->dev);
	ck_assert(mlx5vfio_guarded(patient->dev));
	mlx5vfio_set_handlers(patient->dev, &in_loop, patient);
}

static void start_timer(uv_timer_t *timer, uv_timer_cb callback, uint64_t ms)
{
	uv_timer_init(&blocked.loop, timer);
	uv_timer_start(timer, callback, ms, 0);
}

static int64_t told_after(int number)
{
	return blocked.patients[number].told_at - blocked.resumed;
}

static void check_stall(int number, int64_t within_ms)
{
	ck_assert_int_eq(blocked.patients[number].told, 1);
	ck_assert_int_eq(blocked.patients[number].fault, MLX5VFIO_STALLED);
	ck_assert_int_le(told_after(number), within_ms);
}

/*
 * A counter that was seen standing before is known to have stood for all that time: told on the
 * next turn, of which the tick is part. One that has moved since the last look may have moved just
 * now.
 */
START_TEST(blocked_loop)
{
	int i;

	memset(&blocked, 0, sizeof(blocked));
	uv_loop_init(&blocked.loop);
	for (i = 0; i < DEVICES; i++)
		admit(i);
	start_timer(&blocked.freeze, freeze_before, 100);
	uv_async_init(&blocked.loop, &blocked.block, block);
	start_timer(&blocked.begin, begin_block, 100 + MLX5VFIO_DEFAULT_INTERVAL + 200);
	start_timer(&blocked.end, end_blocked, 800 + BLOCK_MS + 3000);
	uv_run(&blocked.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&blocked.loop), 0);
	printf("loop blocked for %d ms: healthy device %d reports; frozen before it, told %lld ms after "
	       "it; frozen meanwhile, %lld ms\n",
	       BLOCK_MS, blocked.patients[HEALTHY].told, (long long)told_after(FROZEN_BEFORE),
	       (long long)told_after(FROZEN_MEANWHILE));
	ck_assert_int_eq(blocked.patients[HEALTHY].told, 0);
	check_stall(FROZEN_BEFORE, 100);
	check_stall(FROZEN_MEANWHILE, 2000 + MLX5VFIO_DEFAULT_INTERVAL + 100);
	for (i = 0; i < DEVICES; i++) {
		support_sim("heal %d", i);
		ck_assert_int_eq(ibv_close_device(blocked.patients[i].ctx), 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard, blocked loop");
	TCase *tcase = tcase_create("blocked");

	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, blocked_loop);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}
