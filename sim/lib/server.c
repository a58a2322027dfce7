/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket of a process, and its clients. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "clock.h"
#include "control.h"
#include "object.h"
#include "real.h"
#include "server.h"
#include "settings.h"

struct client {
	int fd;
	size_t used;
	char line[CONTROL_LINE];
	bool waiting;
	struct control_wait wait;
	uint64_t deadline;
};

/* Looked at this often while somebody waits for a device to settle. */
#define SETTLE_PERIOD (200 * NS_PER_US)

static int listener = -1;
static struct client clients[SERVER_CLIENTS];

static bool make_address(struct sockaddr_un *address, const char *path)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!*path || strlen(path) >= sizeof(address->sun_path))
		return false;
	memcpy(address->sun_path, path, strlen(path) + 1);
	return true;
}

/* Another process of the same simulator may serve already: the first one that lives has it. */
static bool somebody_serves(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool serves = fd >= 0 && !connect(fd, (const struct sockaddr *)address, sizeof(*address));

	if (fd >= 0)
		real()->close(fd);
	return serves;
}

/* Removes what a dead process left, and nothing but a socket. */
static void remove_stale(const char *path)
{
	struct stat st;

	if (!real()->lstat(path, &st) && S_ISSOCK(st.st_mode))
		unlink(path);
}

static bool bind_private(int fd, const struct sockaddr_un *address)
{
	/* The directory is private too, but the path may have been chosen by the user. */
	return !fchmod(fd, 0600) && !bind(fd, (const struct sockaddr *)address, sizeof(*address)) &&
	       !chmod(address->sun_path, 0600) && !listen(fd, SERVER_CLIENTS);
}

void server_open(void)
{
	struct sockaddr_un address;
	int fd;

	listener = -1;
	for (unsigned i = 0; i < SERVER_CLIENTS; i++)
		clients[i].fd = -1;
	if (!make_address(&address, settings()->socket) || somebody_serves(&address))
		return;
	remove_stale(address.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (bind_private(fd, &address))
		listener = object_internal(fd);
	else
		real()->close(fd);
}

/* In a forked child: the copies would keep a dead parent's socket alive. */
void server_forget(void)
{
	if (listener >= 0)
		real()->close(listener);
	listener = -1;
	for (unsigned i = 0; i < SERVER_CLIENTS; i++)
		if (clients[i].fd >= 0)
			real()->close(clients[i].fd);
}

static bool room_for_client(void)
{
	for (unsigned i = 0; i < SERVER_CLIENTS; i++)
		if (clients[i].fd < 0)
			return true;
	return false;
}

int server_pollfds(struct pollfd *fds)
{
	/* Whoever comes when there is no room waits to be accepted. */
	fds[0] = (struct pollfd){ .fd = room_for_client() ? listener : -1, .events = POLLIN };
	for (unsigned i = 0; i < SERVER_CLIENTS; i++)
		/* Whoever waits for an answer is not read from. */
		fds[1 + i] = (struct pollfd){ .fd = clients[i].fd,
					      .events = clients[i].waiting ? 0 : POLLIN };
	return SERVER_FDS;
}

static void drop_client(struct client *client)
{
	object_internal_close(client->fd);
	client->fd = -1;
	client->waiting = false;
}

static bool permitted(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return false;
	return !peer.uid || peer.uid == geteuid();
}

static void accept_client(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	for (unsigned i = 0; i < SERVER_CLIENTS; i++) {
		if (clients[i].fd >= 0 || !permitted(fd))
			continue;
		clients[i] = (struct client){ .fd = object_internal(fd) };
		return;
	}
	real()->close(fd);
}

/* A client that does not read its answers is dropped rather than waited for. */
static void answer(struct client *client, int error, const char *text)
{
	char line[CONTROL_REPLY + 16];
	int length = snprintf(line, sizeof(line), "%s%s%s\n", error ? "error" : "ok",
			      *text ? " " : "", text);

	if (send(client->fd, line, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) != length)
		drop_client(client);
}

static void run_line(struct client *client, const char *line)
{
	bool takes_time = control_takes_time(line, &client->wait);
	char reply[CONTROL_REPLY];
	int error = 0;

	if (!takes_time || client->wait.for_close)
		error = control_run(line, reply, sizeof(reply));
	if (error || !takes_time) {
		answer(client, error, reply);
		return;
	}
	client->waiting = true;
	client->deadline = client->wait.ns;
	if (client->wait.ns != UINT64_MAX)
		client->deadline += clock_now();
}

/* Runs the complete lines that are there, up to one that takes time. */
static void run_lines(struct client *client)
{
	char line[CONTROL_LINE];
	char *end;

	while (client->fd >= 0 && !client->waiting &&
	       (end = memchr(client->line, '\n', client->used))) {
		size_t length = (size_t)(end - client->line);

		memcpy(line, client->line, length);
		line[length] = '\0';
		client->used -= length + 1;
		memmove(client->line, end + 1, client->used);
		run_line(client, line);
	}
	if (client->fd >= 0 && client->used == sizeof(client->line))
		drop_client(client);
}

static void read_client(struct client *client)
{
	ssize_t got = recv(client->fd, client->line + client->used,
			   sizeof(client->line) - client->used, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		drop_client(client);
		return;
	}
	client->used += (size_t)got;
	run_lines(client);
}

void server_serve(const struct pollfd *fds, int count)
{
	/* Closed behind our back: polling it again would spin. */
	if (fds[0].revents & POLLNVAL)
		listener = -1;
	else if (fds[0].revents)
		accept_client();
	for (int i = 1; i < count; i++) {
		struct client *client = &clients[i - 1];

		if (fds[i].fd < 0 || client->fd != fds[i].fd || !fds[i].revents)
			continue;
		if (client->waiting)
			drop_client(client); /* hung up while it waited */
		else
			read_client(client);
	}
}

static void step_client(struct client *client, uint64_t now)
{
	if (control_done(&client->wait)) {
		client->waiting = false;
		answer(client, 0, "");
	} else if (now >= client->deadline) {
		client->waiting = false;
		answer(client, -ETIMEDOUT, control_late(&client->wait));
	}
	run_lines(client);
}

/* A close wakes the engine by itself. */
static uint64_t look_again(const struct client *client, uint64_t now)
{
	return client->wait.for_close ? client->deadline : now + SETTLE_PERIOD;
}

void server_step(uint64_t now, uint64_t *next)
{
	for (unsigned i = 0; i < SERVER_CLIENTS; i++) {
		struct client *client = &clients[i];

		if (client->fd < 0 || !client->waiting)
			continue;
		step_client(client, now);
		if (client->waiting && look_again(client, now) < *next)
			*next = look_again(client, now);
	}
}
