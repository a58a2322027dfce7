/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each scenario is gone through again and again; each time the next of the
 * calls that it makes fails, until there is no next one. Included by a test
 * program after its loop.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mlx5vfio/eq.h>

#include "inject.h"
#include "model/loop.h"
#include "support/support.h"

enum {
	INTERVAL_MS = 10,
	OTHER_INTERVAL_MS = 77,
	PATIENCE_MS = 5000,
	MOST_CALLS = 2000,
};

/* One run of a scenario: a loop, a device, and what its handlers heard. */
struct scene {
	void *loop;
	struct ibv_context *ctx;
	struct mlx5vfio *dev;
	struct mlx5vfio_eq *eq;
	int fds; /* open before the device was */
	int ret; /* of the call that the scenario is about; errno for a NULL */
	char why[256];
	unsigned healths, errors, removals, closes, detaches, events;
	int error;
};

struct scenario {
	const char *name;
	enum { UNOPENED, OPEN, ATTACHED } begins;
	bool by_library; /* the ctx is opened by mlx5vfio_open() */
	enum inject_whose whose;
	void (*prepare)(struct scene *scene);
	void (*act)(struct scene *scene);
	void (*judge)(struct scene *scene);
};

static void on_health(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg)
{
	struct scene *scene = arg;

	(void)dev;
	(void)health;
	scene->healths++;
}

static void on_error(struct mlx5vfio *dev, int error, void *arg)
{
	struct scene *scene = arg;

	(void)dev;
	scene->errors++;
	scene->error = error;
}

static void on_removal(struct mlx5vfio *dev, void *arg)
{
	struct scene *scene = arg;

	(void)dev;
	scene->removals++;
}

static void on_closed(int error, void *arg)
{
	struct scene *scene = arg;

	ck_assert_int_eq(error, 0);
	scene->closes++;
}

static void on_detached(void *arg)
{
	struct scene *scene = arg;

	scene->detaches++;
	tested_loop.drop(scene->loop, scene->dev);
	scene->dev = NULL;
	scene->eq = NULL;
}

static void on_event(struct mlx5vfio_eq *eq, const struct mlx5vfio_event *event, void *arg)
{
	struct scene *scene = arg;

	(void)eq;
	scene->events += event->type == MLX5VFIO_EVENT_PORT_STATE_CHANGE;
}

static const struct mlx5vfio_handlers handlers = {
	.health = on_health,
	.error = on_error,
	.removal = on_removal,
	.closed = on_closed,
	.detached = on_detached,
};

static unsigned heard(const struct scene *scene)
{
	return scene->healths + scene->errors + scene->removals + scene->closes + scene->detaches;
}

static void turn_for(const struct scene *scene, int ms)
{
	int64_t end = support_now_ms() + ms;
	int64_t left;

	while ((left = end - support_now_ms()) > 0)
		tested_loop.turn(scene->loop, (int)left);
}

static void attach(struct scene *scene)
{
	scene->dev = tested_loop.attach(scene->loop, scene->ctx);
	ck_assert_msg(scene->dev != NULL, "attach: errno %d", errno);
	mlx5vfio_set_handlers(scene->dev, &handlers, scene);
	mlx5vfio_set_interval(scene->dev, INTERVAL_MS);
}

/* Turns until the last request was answered, as it is when nothing is wrong. */
static void expect_service(const struct scene *scene)
{
	int64_t end = support_now_ms() + PATIENCE_MS;
	uint64_t given = support_stats(0).pages_given;

	support_sim("page-request 0 2 1 spaced");
	while (support_stats(0).pages_given < given + 2 || mlx5vfio_sim_settle(0, 0)) {
		ck_assert_msg(support_now_ms() < end,
			      "no service after %s failed; heard %u, last error %d",
			      inject_failed(), heard(scene), scene->error);
		tested_loop.turn(scene->loop, INTERVAL_MS);
	}
}

static void detach(struct scene *scene)
{
	unsigned before = heard(scene) - scene->detaches;

	if (!scene->dev)
		return;
	tested_loop.drop(scene->loop, scene->dev);
	mlx5vfio_detach(scene->dev);
	tested_loop.turn(scene->loop, 0);
	ck_assert_uint_eq(scene->detaches, 1);
	ck_assert_uint_eq(heard(scene) - scene->detaches, before);
}

static struct ibv_context *open_by_library(struct scene *scene)
{
	return mlx5vfio_open(support_pci_name(0), 0, scene->why, sizeof(scene->why));
}

static void begin(struct scene *scene, const struct scenario *scenario)
{
	*scene = (struct scene){ .loop = tested_loop.create(), .fds = 0 };
	tested_loop.turn(scene->loop, 1);
	scene->fds = support_open_fds();
	if (scenario->begins != UNOPENED)
		scene->ctx = scenario->by_library ? open_by_library(scene) : support_open(0);
	if (scenario->begins == ATTACHED)
		attach(scene);
	if (scenario->prepare)
		scenario->prepare(scene);
}

/* A helper thread that had nothing to close ends when it gets round to it. */
static void expect_fds(const struct scene *scene)
{
	int64_t end_ms = support_now_ms() + PATIENCE_MS;

	while (support_open_fds() != scene->fds && support_now_ms() < end_ms)
		usleep(100);
	ck_assert_int_eq(support_open_fds(), scene->fds);
}

/* Whatever failed, nothing is left: no watcher, no fd, no broken rule of the
 * device. */
static void end(struct scene *scene)
{
	detach(scene);
	if (scene->ctx) {
		ck_assert_uint_eq(support_stats(0).violations, 0);
		ck_assert_int_eq(ibv_close_device(scene->ctx), 0);
		scene->ctx = NULL;
	}
	tested_loop.turn(scene->loop, 1);
	expect_fds(scene);
	ck_assert_msg(tested_loop.destroy(scene->loop), "something is left on the loop after %s",
		      inject_failed());
}

/* ---- Attach ---- */

static void act_attach(struct scene *scene)
{
	errno = 0;
	scene->dev = tested_loop.attach(scene->loop, scene->ctx);
	scene->ret = errno;
}

static void serve_and_detach(struct scene *scene)
{
	mlx5vfio_set_handlers(scene->dev, &handlers, scene);
	mlx5vfio_set_interval(scene->dev, INTERVAL_MS);
	expect_service(scene);
	detach(scene);
}

/* What can be done without is done without. Else there is an error, and nothing
 * on the loop. */
static void judge_attach(struct scene *scene)
{
	int fds = support_open_fds();

	if (!scene->dev) {
		ck_assert_int_gt(scene->ret, 0);
		support_sim("page-request 0 2 1 spaced");
		turn_for(scene, 2);
		ck_assert_uint_eq(support_stats(0).pages_given, 0);
		attach(scene);
		ck_assert_int_le(support_open_fds(), fds);
	}
	serve_and_detach(scene);
	scene->detaches = 0;
	attach(scene);
}

/* ---- Open ---- */

static void act_open(struct scene *scene)
{
	errno = 0;
	scene->ctx = open_by_library(scene);
	scene->ret = errno;
}

static void judge_open(struct scene *scene)
{
	if (!scene->ctx) {
		ck_assert_int_gt(scene->ret, 0);
		ck_assert_str_ne(scene->why, "");
		expect_fds(scene);
		scene->ctx = open_by_library(scene);
		ck_assert_ptr_nonnull(scene->ctx);
	}
	attach(scene);
	expect_service(scene);
}

/* ---- Events and ticks ---- */

static void prepare_request(struct scene *scene)
{
	uint64_t eqes = support_stats(0).eqes;

	turn_for(scene, 2 * INTERVAL_MS);
	support_sim("page-request 0 2 1 spaced");
	while (support_stats(0).eqes == eqes)
		usleep(100);
}

static void act_turn(struct scene *scene)
{
	turn_for(scene, INTERVAL_MS / 2);
}

static void act_tick(struct scene *scene)
{
	turn_for(scene, 2 * INTERVAL_MS);
}

/* Whatever failed was tried again, and nothing else was told. */
static void judge_turns(struct scene *scene)
{
	ck_assert_uint_eq(heard(scene), scene->errors);
	ck_assert_uint_le(scene->errors, 2);
	ck_assert_int_le(scene->error, 0);
	expect_service(scene);
}

/* The device's answer to the request is an error, for which libmlx5 has to be
 * called again. */
static void prepare_error(struct scene *scene)
{
	prepare_request(scene);
	support_sim("fail 0 0x108 1");
}

static void judge_error(struct scene *scene)
{
	int64_t end_ms = support_now_ms() + PATIENCE_MS;

	while (!scene->errors && support_now_ms() < end_ms)
		tested_loop.turn(scene->loop, INTERVAL_MS);
	support_sim("fail 0 0x108 1 0");
	ck_assert_uint_ge(scene->errors, 1);
	scene->errors = scene->errors > 2 ? scene->errors : 0;
	judge_turns(scene);
}

static void prepare_fault(struct scene *scene)
{
	turn_for(scene, 2 * INTERVAL_MS);
	support_sim("nic-disabled 0");
}

static void prepare_removal(struct scene *scene)
{
	turn_for(scene, 2 * INTERVAL_MS);
	support_sim("remove-request 0");
}

/* Told once, however late. */
static void judge_told(struct scene *scene)
{
	int64_t end_ms = support_now_ms() + PATIENCE_MS;

	while (!scene->healths && !scene->removals) {
		ck_assert_msg(support_now_ms() < end_ms, "not told after %s failed",
			      inject_failed());
		tested_loop.turn(scene->loop, INTERVAL_MS);
	}
	turn_for(scene, 3 * INTERVAL_MS);
	ck_assert_uint_eq(scene->healths + scene->removals, 1);
	support_sim("heal 0");
	detach(scene);
	scene->detaches = 0;
	attach(scene);
	expect_service(scene);
}

static void act_interval(struct scene *scene)
{
	scene->ret = mlx5vfio_set_interval(scene->dev, OTHER_INTERVAL_MS);
}

static void judge_interval(struct scene *scene)
{
	ck_assert_int_eq(scene->ret, 0);
	judge_turns(scene);
}

static void act_health(struct scene *scene)
{
	struct mlx5vfio_health health;

	scene->ret = mlx5vfio_get_health(scene->dev, &health);
}

static void judge_health(struct scene *scene)
{
	ck_assert_int_eq(scene->ret, 0);
	judge_turns(scene);
}

/* ---- Detach and close ---- */

static void act_detach(struct scene *scene)
{
	tested_loop.drop(scene->loop, scene->dev);
	mlx5vfio_detach(scene->dev);
	tested_loop.turn(scene->loop, 0);
}

static void judge_detach(struct scene *scene)
{
	ck_assert_uint_eq(heard(scene), 1);
	ck_assert_uint_eq(scene->detaches, 1);
	scene->detaches = 0;
	attach(scene);
	expect_service(scene);
}

static void act_close(struct scene *scene)
{
	scene->ret = mlx5vfio_close(scene->dev);
}

/* A close that fails has changed nothing. */
static void judge_close(struct scene *scene)
{
	int64_t end_ms = support_now_ms() + PATIENCE_MS;

	ck_assert_int_le(scene->ret, 0);
	ck_assert_uint_eq(heard(scene), 0);
	if (scene->ret) {
		expect_service(scene);
		ck_assert_int_eq(mlx5vfio_close(scene->dev), 0);
	}
	scene->ctx = NULL;
	while (!scene->detaches) {
		ck_assert_msg(support_now_ms() < end_ms, "no .detached after %s failed",
			      inject_failed());
		tested_loop.turn(scene->loop, INTERVAL_MS);
	}
	ck_assert_uint_eq(scene->closes, 1);
	ck_assert_uint_eq(heard(scene), 2);
}

/* ---- Event queues ---- */

static void act_eq_open(struct scene *scene)
{
	static const struct mlx5vfio_eq_attr attr = {
		.log_size = 4,
		.events = UINT64_C(1) << MLX5VFIO_EVENT_PORT_STATE_CHANGE,
	};

	errno = 0;
	scene->eq = mlx5vfio_eq_open(scene->dev, &attr, on_event, scene);
	scene->ret = errno;
}

static void expect_port_event(struct scene *scene)
{
	int64_t end_ms = support_now_ms() + PATIENCE_MS;
	unsigned before = scene->events;

	support_sim("port 0 up");
	while (scene->events == before) {
		ck_assert_msg(support_now_ms() < end_ms, "no port event after %s failed",
			      inject_failed());
		tested_loop.turn(scene->loop, INTERVAL_MS);
	}
	ck_assert_uint_eq(scene->events, before + 1);
}

static void judge_eq_open(struct scene *scene)
{
	if (!scene->eq) {
		ck_assert_int_gt(scene->ret, 0);
		act_eq_open(scene);
		ck_assert_ptr_nonnull(scene->eq);
	}
	expect_port_event(scene);
	ck_assert_uint_eq(heard(scene), 0);
	expect_service(scene);
}

static void prepare_eq(struct scene *scene)
{
	act_eq_open(scene);
	ck_assert_ptr_nonnull(scene->eq);
	turn_for(scene, INTERVAL_MS);
	support_sim("port 0 up");
	usleep(2000);
}

static void judge_eq_events(struct scene *scene)
{
	int64_t end_ms = support_now_ms() + PATIENCE_MS;

	while (!scene->events && support_now_ms() < end_ms)
		tested_loop.turn(scene->loop, INTERVAL_MS);
	ck_assert_uint_eq(scene->events, 1);
	expect_port_event(scene);
	judge_turns(scene);
}

static void act_eq_close(struct scene *scene)
{
	mlx5vfio_eq_close(scene->eq);
	scene->eq = NULL;
}

static void judge_eq_close(struct scene *scene)
{
	turn_for(scene, 2);
	ck_assert_uint_eq(scene->events, 0);
	ck_assert_uint_eq(heard(scene), scene->errors);
	act_eq_open(scene);
	ck_assert_ptr_nonnull(scene->eq);
	expect_port_event(scene);
	expect_service(scene);
}

static const struct scenario scenarios[] = {
	{ "attach", OPEN, false, INJECT_ALL, NULL, act_attach, judge_attach },
	{ "attach after mlx5vfio_open", OPEN, true, INJECT_ALL, NULL, act_attach, judge_attach },
	{ "open", UNOPENED, true, INJECT_OURS, NULL, act_open, judge_open },
	{ "event", ATTACHED, false, INJECT_ALL, prepare_request, act_turn, judge_turns },
	{ "tick", ATTACHED, true, INJECT_ALL, NULL, act_tick, judge_turns },
	{ "event with an error", ATTACHED, false, INJECT_ALL, prepare_error, act_turn,
	  judge_error },
	{ "fault", ATTACHED, false, INJECT_ALL, prepare_fault, act_tick, judge_told },
	{ "removal", ATTACHED, true, INJECT_ALL, prepare_removal, act_tick, judge_told },
	{ "set_interval", ATTACHED, false, INJECT_ALL, NULL, act_interval, judge_interval },
	{ "get_health", ATTACHED, false, INJECT_ALL, NULL, act_health, judge_health },
	{ "detach", ATTACHED, true, INJECT_ALL, NULL, act_detach, judge_detach },
	{ "close", ATTACHED, false, INJECT_ALL, NULL, act_close, judge_close },
	{ "eq_open", ATTACHED, false, INJECT_COMMANDS, NULL, act_eq_open, judge_eq_open },
	{ "eq event", ATTACHED, false, INJECT_ALL, prepare_eq, act_turn, judge_eq_events },
	{ "eq_close", ATTACHED, false, INJECT_COMMANDS, prepare_eq, act_eq_close, judge_eq_close },
	{ "detach with an eq", ATTACHED, false, INJECT_COMMANDS, prepare_eq, act_detach,
	  judge_detach },
};

#define SCENARIOS (int)(sizeof(scenarios) / sizeof(scenarios[0]))

static struct scene scene;

/* The simulator and libmlx5 open some fds when they are first used, and keep
 * them. */
static void warm_up(void)
{
	ibv_close_device(support_open(0));
}

/* False when there was no call with this number. */
static bool play(const struct scenario *scenario, unsigned number)
{
	const char *failed;

	begin(&scene, scenario);
	inject_arm(number, scenario->whose);
	scenario->act(&scene);
	inject_disarm();
	failed = inject_failed();
	if (getenv("FAILING_VERBOSE"))
		printf("%s: %u: %s %d\n", scenario->name, number, failed ? failed : "-", scene.ret);
	scenario->judge(&scene);
	end(&scene);
	scene.loop = NULL;
	return failed != NULL;
}

/* What a scenario that failed left behind, so that the next one does not fail
 * of it too. */
static void clean_up(void)
{
	if (!scene.loop)
		return;
	printf("in the scene where %s failed:\n", inject_failed() ? inject_failed() : "nothing");
	support_sim("heal 0");
	if (scene.dev)
		mlx5vfio_detach(scene.dev);
	if (scene.ctx)
		ibv_close_device(scene.ctx);
}

START_TEST(every_call_fails_once)
{
	const struct scenario *scenario = &scenarios[_i];
	unsigned number = 1;

	while (number < MOST_CALLS && play(scenario, number))
		number++;
	ck_assert_uint_lt(number, MOST_CALLS);
	ck_assert_msg(!play(scenario, 0), "a call failed that should not");
	printf("%-8s %-28s %3u calls, each failed once\n", tested_loop.name, scenario->name,
	       number - 1);
}
END_TEST

/* A case each, so that CK_RUN_CASE="eq_open" runs one of them. */
static void add_scenario(Suite *suite, int index)
{
	TCase *tcase = tcase_create(scenarios[index].name);

	tcase_set_timeout(tcase, 0);
	tcase_add_unchecked_fixture(tcase, warm_up, NULL);
	tcase_add_checked_fixture(tcase, NULL, clean_up);
	tcase_add_loop_test(tcase, every_call_fails_once, index, index + 1);
	suite_add_tcase(suite, tcase);
}

static int failing_run(void)
{
	Suite *suite = suite_create("failing");

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < SCENARIOS; i++)
		add_scenario(suite, i);
	return support_run(suite);
}
