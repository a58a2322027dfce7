/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the model in child processes, one sequence of operations each, and shortens one that fails.
 *
 *	test_model_uv			for MODEL_SECONDS (10), from seed SEED on (the clock)
 *	test_model_uv --seed N		one, in this process
 *	test_model_uv --replay FILE	the operations in FILE, in this process
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "turns.c"

enum {
	LENGTH = 150,      /* operations of a sequence */
	HANGS_S = 150,     /* a sequence that takes so long hangs */
	SHRINK_MS = 60000, /* what shortening may take */
	TRIES = 4,
	OUTPUT = 8192,
};

struct outcome {
	int status;
	char output[OUTPUT];
};

static struct ops current;

static int in_this_process(void)
{
	alarm(HANGS_S);
	world_run(&current);
	return 0;
}

static void become_child(const char *option, const char *value, int out)
{
	const char *const argv[] = { "test_model", option, value, NULL };

	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execv("/proc/self/exe", (char *const *)argv);
	_exit(127);
}

/* The first OUTPUT bytes of what it says are kept. */
static void in_child(const char *option, const char *value, struct outcome *outcome)
{
	size_t used = 0;
	int pipes[2];
	char more[512];
	ssize_t got;
	pid_t pid;

	support_require(!pipe2(pipes, O_CLOEXEC), "no pipe");
	pid = fork();
	support_require(pid >= 0, "no child");
	if (!pid)
		become_child(option, value, pipes[1]);
	close(pipes[1]);
	while ((got = read(pipes[0], more, sizeof(more))) > 0) {
		size_t room = OUTPUT - 1 - used;
		size_t taken = (size_t)got < room ? (size_t)got : room;

		memcpy(outcome->output + used, more, taken);
		used += taken;
	}
	outcome->output[used] = '\0';
	close(pipes[0]);
	while (waitpid(pid, &outcome->status, 0) < 0 && errno == EINTR)
		;
}

static const char *replay_file(void)
{
	const char *dir = getenv("BUILD");
	static char path[512];

	snprintf(path, sizeof(path), "%s/model-%s.ops", dir ? dir : "/tmp", tested_loop.name);
	return path;
}

static bool still_fails(const struct ops *ops, struct outcome *outcome)
{
	FILE *file = fopen(replay_file(), "we");

	support_require(file != NULL, "cannot write %s", replay_file());
	ops_print(ops, file);
	fclose(file);
	in_child("--replay", replay_file(), outcome);
	return outcome->status != 0;
}

/* The machine's own timing has a part in it. */
static bool fails_again(const struct ops *ops, struct outcome *outcome)
{
	for (int i = 0; i < TRIES; i++)
		if (still_fails(ops, outcome))
			return true;
	return false;
}

/* Without count operations from first on. */
static void leave_out(const struct ops *from, int first, int count, struct ops *to)
{
	int rest = from->count - first - count;

	to->count = from->count - count;
	memcpy(to->op, from->op, (size_t)first * sizeof(to->op[0]));
	memcpy(to->op + first, from->op + first + count, (size_t)rest * sizeof(to->op[0]));
}

/* Leaves out pieces, half of it at first and single operations at last, as long as it fails. */
static void shrink(struct ops *ops, struct outcome *outcome)
{
	int64_t end = support_now_ms() + SHRINK_MS;
	static struct outcome tried;
	static struct ops shorter;

	for (int piece = ops->count / 2; piece; piece /= 2) {
		for (int at = ops->count - piece; at >= 0; at -= piece) {
			if (at + piece > ops->count || support_now_ms() > end)
				continue;
			leave_out(ops, at, piece, &shorter);
			if (!still_fails(&shorter, &tried))
				continue;
			*ops = shorter;
			*outcome = tried;
		}
	}
	still_fails(ops, &tried);
	if (tried.status)
		*outcome = tried;
}

static void tell_failure(uint64_t seed, struct outcome *outcome)
{
	printf("seed %" PRIu64 " fails, status 0x%x:\n%s\n", seed, (unsigned)outcome->status,
	       outcome->output);
	ops_generate(&current, seed, LENGTH);
	if (fails_again(&current, outcome))
		shrink(&current, outcome);
	else
		printf("not when it is done %d times again; all its operations are kept\n", TRIES);
	printf("%d operations are left, in %s (--replay), status 0x%x:\n", current.count,
	       replay_file(), (unsigned)outcome->status);
	ops_print(&current, stdout);
	printf("%s\n", outcome->output);
	fflush(stdout);
}

struct totals {
	uint64_t count[7];
	unsigned sequences;
};

static void add_up(const char *output, struct totals *totals)
{
	const char *line = strrchr(output, '\n');
	uint64_t count[7];

	while (line && line > output && line[-1] != '\n')
		line--;
	if (!line || sscanf(line,
			    "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			    " %" SCNu64,
			    &count[0], &count[1], &count[2], &count[3], &count[4], &count[5],
			    &count[6]) != 7)
		return;
	for (int i = 0; i < 7; i++)
		totals->count[i] += count[i];
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoull(value, NULL, 10) : otherwise;
}

static void tell_totals(const struct totals *totals, uint64_t seed)
{
	const uint64_t *n = totals->count;

	printf("%-8s seeds %" PRIu64 " to %" PRIu64
	       ": %u sequences of %d operations; calls %" PRIu64 ", faults %" PRIu64
	       ", errors %" PRIu64 ", removals %" PRIu64 ", events %" PRIu64 ", closed %" PRIu64
	       ", detached %" PRIu64 "\n",
	       tested_loop.name, seed, seed + totals->sequences - 1, totals->sequences, LENGTH,
	       n[0], n[1], n[2], n[3], n[4], n[5], n[6]);
}

START_TEST(random_sequences)
{
	int64_t end = support_now_ms() + 1000 * (int64_t)setting("MODEL_SECONDS", 10);
	uint64_t first = setting("SEED", (uint64_t)time(NULL) * 1000);
	static struct outcome outcome;
	struct totals totals = { .sequences = 0 };
	char seed[24];

	while (support_now_ms() < end) {
		snprintf(seed, sizeof(seed), "%" PRIu64, first + totals.sequences++);
		in_child("--seed", seed, &outcome);
		if (outcome.status) {
			tell_failure(first + totals.sequences - 1, &outcome);
			ck_abort_msg("%s: seed %s fails", tested_loop.name, seed);
		}
		add_up(outcome.output, &totals);
	}
	tell_totals(&totals, first);
	ck_assert_uint_gt(totals.sequences, 0);
	ck_assert_uint_gt(totals.count[0], 0);
}
END_TEST

static int run_suite(void)
{
	Suite *suite = suite_create("model");
	TCase *tcase = tcase_create(tested_loop.name);

	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, random_sequences);
	suite_add_tcase(suite, tcase);
	return support_run(suite);
}

static int model_main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3)
		return run_suite();
	if (!strcmp(argv[1], "--replay"))
		ops_read(&current, argv[2]);
	else
		ops_generate(&current, strtoull(argv[2], NULL, 10), LENGTH);
	return in_this_process();
}
