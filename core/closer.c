/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_close_device() waits for firmware: 240 s of busy polling on a dead device. It runs on a
 * detached thread, so that neither the loop nor the end of the process waits for it.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "closer.h"
#include "verbs.h"

enum order { ORDER_WAIT, ORDER_CLOSE, ORDER_QUIT };

struct closer {
	struct ibv_context *ctx;
	struct verbs_eq *queues;
	bool dead;
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t ordered;
	enum order order;
	bool done;
	int error;
	unsigned users; /* the thread and the device */
};

static void closer_put(struct closer *closer)
{
	unsigned users;

	pthread_mutex_lock(&closer->lock);
	users = --closer->users;
	pthread_mutex_unlock(&closer->lock);
	if (users)
		return;
	pthread_cond_destroy(&closer->ordered);
	pthread_mutex_destroy(&closer->lock);
	close(closer->fd);
	free(closer);
}

static enum order closer_wait(struct closer *closer)
{
	enum order order;

	pthread_mutex_lock(&closer->lock);
	while (closer->order == ORDER_WAIT)
		pthread_cond_wait(&closer->ordered, &closer->lock);
	order = closer->order;
	pthread_mutex_unlock(&closer->lock);
	return order;
}

/* A healthy close sleeps between commands and would starve as an idle thread on a busy machine. */
static void yield_to_everybody(void)
{
	static const struct sched_param none;

	pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
}

/*
 * The command that destroys a queue never returns on a dead device: the kernel's part goes with
 * the ctx.
 */
static void end_queues(struct closer *closer)
{
	struct verbs_eq *queue;

	while ((queue = closer->queues)) {
		closer->queues = queue->next;
		if (closer->dead)
			free(queue);
		else
			verbs_eq_destroy(queue);
	}
}

static void *closer_main(void *arg)
{
	struct closer *closer = arg;
	int error;

	if (closer_wait(closer) == ORDER_CLOSE) {
		if (closer->dead)
			yield_to_everybody();
		end_queues(closer);
		error = verbs_close(closer->ctx);
		pthread_mutex_lock(&closer->lock);
		closer->error = error;
		closer->done = true;
		pthread_mutex_unlock(&closer->lock);
		eventfd_write(closer->fd, 1);
	}
	closer_put(closer);
	return NULL;
}

/* A signal handled by this thread would fail the command that it waits for. */
static int start_thread(struct closer *closer)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, closer_main, closer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

int closer_new(struct ibv_context *ctx, bool dead, struct closer **out)
{
	struct closer *closer = calloc(1, sizeof(*closer));
	int err;

	if (!closer)
		return -ENOMEM;
	closer->ctx = ctx;
	closer->dead = dead;
	closer->users = 2;
	closer->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (closer->fd < 0) {
		err = -errno;
		goto fail;
	}
	pthread_mutex_init(&closer->lock, NULL);
	pthread_cond_init(&closer->ordered, NULL);
	err = start_thread(closer);
	if (err)
		goto fail_fd;
	*out = closer;
	return 0;

fail_fd:
	pthread_cond_destroy(&closer->ordered);
	pthread_mutex_destroy(&closer->lock);
	close(closer->fd);
fail:
	free(closer);
	return err;
}

int closer_fd(const struct closer *closer)
{
	return closer->fd;
}

static void give_order(struct closer *closer, enum order order)
{
	pthread_mutex_lock(&closer->lock);
	if (closer->order == ORDER_WAIT)
		closer->order = order;
	pthread_cond_signal(&closer->ordered);
	pthread_mutex_unlock(&closer->lock);
}

void closer_go(struct closer *closer, struct verbs_eq *queues)
{
	closer->queues = queues;
	give_order(closer, ORDER_CLOSE);
}

bool closer_done(struct closer *closer, int *error)
{
	bool done;

	pthread_mutex_lock(&closer->lock);
	done = closer->done;
	*error = closer->error;
	pthread_mutex_unlock(&closer->lock);
	return done;
}

void closer_drop(struct closer *closer)
{
	give_order(closer, ORDER_QUIT);
	closer_put(closer);
}
