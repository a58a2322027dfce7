/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5vfio: an mlx5 device opened through VFIO, in the event loop the program already runs.
 *
 * This header is the core: everything that is the same under every loop. Programs on libuv,
 * libevent or libev include mlx5vfio/uv.h, libevent.h or libev.h instead, which bring the attach
 * call for that loop and include this header. Any other loop is driven through mlx5vfio_attach()
 * below.
 *
 * Conventions
 *  - int functions return 0 or a negative errno; pointer functions return NULL and set errno.
 *  - All calls about one device are made on the thread that runs its loop. Different devices may
 *    live on different threads.
 *  - Times are milliseconds of CLOCK_MONOTONIC unless a name says otherwise.
 *  - The libraries print nothing but one line on stderr each when a device dies while no .health
 *    handler is set, and when the kernel asks for one back while no .removal handler is set.
 */
#ifndef MLX5VFIO_CORE_H
#define MLX5VFIO_CORE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLX5VFIO_API __attribute__((visibility("default")))

struct ibv_context;

/* One attached device. Opaque; made by an attach call, ended by mlx5vfio_detach(). */
struct mlx5vfio;

/* What is wrong with a device. All but MLX5VFIO_OK are final: the device needs a close and an open.
 */
enum mlx5vfio_fault {
	MLX5VFIO_OK,
	MLX5VFIO_PCI_OFFLINE,   /* registers read all ones: unplugged, powered off or a dead link */
	MLX5VFIO_NIC_DISABLED,  /* the NIC interface is in state disabled */
	MLX5VFIO_NIC_RESET,     /* the NIC interface is in state software reset */
	MLX5VFIO_FW_FATAL,      /* firmware reports a syndrome and asks for recovery */
	MLX5VFIO_STALLED,       /* the health counter has not moved for 2000 ms */
	MLX5VFIO_FOREIGN_RESET, /* somebody else reset the function under us */
	MLX5VFIO_PCI_ERROR,     /* a PCI error was signalled and the device died of it */
};

/* A device's state as its health registers tell it. Valid only during the call that hands it out.
 */
struct mlx5vfio_health {
	enum mlx5vfio_fault fault; /* MLX5VFIO_OK while the device lives */
	bool warning;      /* alive, but something is reported: a syndrome without recovery */
	uint8_t synd;      /* firmware's syndrome, 0 for none; see mlx5vfio_synd_str() */
	uint16_t ext_synd; /* its extension, for the vendor */
	uint16_t fw_major, fw_minor, fw_subminor;
	uint32_t counter;       /* the health counter, 24 bits; moves while firmware lives */
	uint32_t unmoved_ms;    /* for how long the counter has not been seen to move */
	uint32_t assert_var[5]; /* firmware's assert record, for the vendor */
	uint32_t assert_exit_ptr;
	uint32_t assert_callra;
	uint32_t hw_id;
	uint8_t irisc_index;   /* the firmware core that reported */
	bool recovery_request; /* firmware asks to be reset */
};

/*
 * Handlers. Each may be NULL. All run on the loop's thread, from inside the loop, never from inside
 * another call of this library except where said. From every handler any function of this library
 * may be called, also mlx5vfio_detach() for the same device, and after that ibv_close_device().
 */
struct mlx5vfio_handlers {
	/*
	 * The state changed: a fault (health->fault != MLX5VFIO_OK; exactly once, nothing follows
	 * but .detached), a warning, or a warning that went away.
	 */
	void (*health)(struct mlx5vfio *dev, const struct mlx5vfio_health *health, void *arg);
	/*
	 * mlx5dv_vfio_process_events() failed (-EIO also where libmlx5 gave no reason), or the loop
	 * cannot watch the fd (-EBADF: it was closed under us; -EIO: the loop reports an error on
	 * it). error is a negative errno. Once per change of error, not once per retry; retries go
	 * on by themselves, except after -EBADF.
	 */
	void (*error)(struct mlx5vfio *dev, int error, void *arg);
	/* The kernel asks for the device back: detach and close it. Once. */
	void (*removal)(struct mlx5vfio *dev, void *arg);
	/* mlx5vfio_close() has finished. error is 0 or a negative errno. Comes before .detached. */
	void (*closed)(int error, void *arg);
	/*
	 * The loop has let go of the device and its memory is gone. Exactly once, after the last
	 * use of arg. Loops that let go at once call it from inside mlx5vfio_detach(), libuv on a
	 * later turn.
	 */
	void (*detached)(void *arg);
};

/* Counters since attach. New ones are added at the end. */
struct mlx5vfio_stats {
	uint64_t wakeups;  /* times the loop found the fd ready */
	uint64_t ticks;    /* health ticks */
	uint64_t calls;    /* calls of mlx5dv_vfio_process_events() */
	uint64_t errors;   /* of these, failed ones */
	uint64_t retries;  /* of these, calls made because the one before failed */
	uint64_t reports;  /* times .error was due, called or not */
	uint64_t samples;  /* times the health registers were read */
	uint64_t deferred; /* calls put off to learn libmlx5's next health check */
	uint64_t events;   /* handed out by the event queues, see eq.h */
};

/*
 * Ends the attachment. The fd is no longer watched, no timer runs, and ibv_close_device() on the
 * ctx is safe as soon as this returns. No handler runs any more, except .detached, once.
 *
 * dev must not be used afterwards. Allowed anywhere on the loop's thread, also in every handler,
 * but not after the loop was destroyed: see mlx5vfio_forget(). NULL is ignored.
 *
 * Closes the event queues that are still open (eq.h), with a device command for each: firmware that
 * hangs and does not show it would hold both this and mlx5vfio_forget() for ever. mlx5vfio_close()
 * leaves that to its helper thread.
 */
MLX5VFIO_API void mlx5vfio_detach(struct mlx5vfio *dev);

/*
 * Frees dev after its loop was destroyed without a detach, which is a mistake, without touching the
 * loop. .detached is called from inside. Not for use while the loop exists, and before the ctx is
 * closed. NULL is ignored.
 */
MLX5VFIO_API void mlx5vfio_forget(struct mlx5vfio *dev);

/*
 * Sets the handlers and the argument that they get. *handlers is copied; NULL sets none. Replaces
 * those set before, whose arg is then never used again and gets no .detached. A fault found before
 * the first call is delivered on the loop's next turn.
 */
MLX5VFIO_API void mlx5vfio_set_handlers(struct mlx5vfio *dev,
					const struct mlx5vfio_handlers *handlers, void *arg);

/*
 * The period of the health tick in milliseconds, 10 to 3600000; default MLX5VFIO_DEFAULT_INTERVAL.
 * 0 stops the tick: a device that dies is then noticed only when an event arrives, and removal
 * requests and PCI errors are not noticed at all. Ticks of all devices with the same period fall
 * together. Returns 0, or -EINVAL for any other value (nothing changes).
 */
MLX5VFIO_API int mlx5vfio_set_interval(struct mlx5vfio *dev, int ms);

/* libmlx5 checks health at most once per 1000 ms; half of that never beats against it. */
#define MLX5VFIO_DEFAULT_INTERVAL 500

/*
 * Whether the device keeps its loop alive (it does at first). Idempotent, no counting. Returns 0
 * or -ENOTSUP where the loop has no such notion (libevent, a loop without .keepalive), -EINVAL for
 * NULL. A device that died keeps nothing alive: it is on the loop no more.
 */
MLX5VFIO_API int mlx5vfio_ref(struct mlx5vfio *dev);
MLX5VFIO_API int mlx5vfio_unref(struct mlx5vfio *dev);

/*
 * Switches the guard off, so that libmlx5 checks health by itself and aborts the process on a
 * fault, or on again. It is on after attach. Returns 0, -ENOTSUP when the registers were not
 * found, -EINVAL for NULL.
 */
MLX5VFIO_API int mlx5vfio_set_guard(struct mlx5vfio *dev, bool on);

/*
 * Reads the health registers now. A fault found here is also delivered through .health, on the
 * loop's next turn. Returns 0, -ENOTSUP when the device is not guarded or is closing, -EBADF when
 * its ctx was closed, -EINVAL for NULL; on failure *out is zero.
 */
MLX5VFIO_API int mlx5vfio_get_health(struct mlx5vfio *dev, struct mlx5vfio_health *out);

/*
 * True while a dying device becomes a .health call. False when the registers could not be found or
 * the guard was switched off: libmlx5 then aborts the process when the device dies.
 */
MLX5VFIO_API bool mlx5vfio_guarded(const struct mlx5vfio *dev);

/*
 * What can be had for this device, as a mask of MLX5VFIO_FEATURE_*. A ctx that the program opened
 * by itself, or that was attached before, has no more than the guard.
 */
MLX5VFIO_API unsigned mlx5vfio_features(const struct mlx5vfio *dev);

#define MLX5VFIO_FEATURE_GUARD     (1u << 0) /* as mlx5vfio_guarded() */
#define MLX5VFIO_FEATURE_REMOVAL   (1u << 1) /* .removal is called */
#define MLX5VFIO_FEATURE_PCI_ERROR (1u << 2) /* PCI errors are a warning, then MLX5VFIO_PCI_ERROR */

/* Copies the counters. size is sizeof(*out) of the caller; what the library does not know is
 * zeroed. */
MLX5VFIO_API void mlx5vfio_get_stats(const struct mlx5vfio *dev, struct mlx5vfio_stats *out,
				     size_t size);

/* The ctx the device was attached with. */
MLX5VFIO_API struct ibv_context *mlx5vfio_context(const struct mlx5vfio *dev);

/* One or a few words for a fault, a syndrome, the library's version. Static strings, never NULL. */
MLX5VFIO_API const char *mlx5vfio_fault_str(enum mlx5vfio_fault fault);
MLX5VFIO_API const char *mlx5vfio_synd_str(uint8_t synd);
MLX5VFIO_API const char *mlx5vfio_version(void);

/*
 * Opens a device by its PCI name ("0000:b0:00.0") through libmlx5. flags are libmlx5's
 * MLX5DV_VFIO_CTX_FLAGS_*. On failure returns NULL, sets errno (never 0), and writes a sentence
 * that says why to why (may be NULL when why_size is 0).
 *
 * Beyond what libmlx5 does, a child process no longer keeps the device busy (its group fd becomes
 * close-on-exec), and the kernel's removal requests and PCI errors reach the device's handlers
 * once it is attached. Before that, mlx5dv_vfio_process_events() must not be called for it.
 *
 * Blocks, for minutes when firmware does not answer: call it on a thread of its own, not on the
 * loop's. Thread-safe. The ctx is the caller's, to be closed with ibv_close_device(), or with
 * mlx5vfio_close() once it is attached.
 */
MLX5VFIO_API struct ibv_context *mlx5vfio_open(const char *pci_name, unsigned flags, char *why,
					       size_t why_size);

/*
 * Looks without opening anything whether the device could be opened: 0, or the negative errno that
 * mlx5vfio_open() would fail with, and the sentence. What only an attempt can show is not found.
 */
MLX5VFIO_API int mlx5vfio_check(const char *pci_name, char *why, size_t why_size);

/*
 * Detaches now and closes the ctx on a helper thread, which can take minutes for a dead device.
 * When that is done .closed is called from the loop, then .detached. Until then the device keeps
 * its loop alive as before; of the functions of this library only mlx5vfio_detach() may be called
 * for it (nobody is told of the end then), mlx5vfio_ref() and mlx5vfio_unref(), and what runs the
 * loop: mlx5vfio_process(), mlx5vfio_pollfds(), mlx5vfio_timeout_ms(). The end of the process does
 * not wait for the thread.
 *
 * Nothing else may use the ctx any more. Returns 0, -EINVAL for NULL, -EALREADY when it is closing
 * already, -EBADF when the ctx was closed already, or the reason why there can be no thread
 * (-EAGAIN, -ENOMEM, -EMFILE): then nothing has changed.
 */
MLX5VFIO_API int mlx5vfio_close(struct mlx5vfio *dev);

/*
 * Bring your own loop. The core says what it wants, the loop does it and tells what happened.
 * All functions are called on the loop's thread, from inside a call of this library.
 */
struct mlx5vfio_loop_ops {
	const char *name; /* for people */
	/*
	 * Watch fd for events (POLLIN), level-triggered; 0 stops, also when fd is closed already.
	 * There may be several fds. Returns 0 or a negative errno.
	 */
	int (*watch)(void *loop, int fd, int events);
	/*
	 * Run the one timer once, in timeout_ms from now (not from a cached time), replacing what
	 * was set; -1 stops. Returns 0 or a negative errno.
	 */
	int (*timer)(void *loop, int timeout_ms);
	/* Keep the loop alive or not. May be NULL. Returns 0 or a negative errno. */
	int (*keepalive)(void *loop, bool on);
	/*
	 * The device was detached: stop everything now, free when the loop lets go, then call
	 * mlx5vfio_released() (from inside is allowed).
	 */
	void (*release)(void *loop);
	/* The loop is gone: free without touching it. May be NULL when there is nothing to free. */
	void (*discard)(void *loop);
};

/*
 * Attaches ctx. ops must outlive the device; loop is handed to its functions, which may be called
 * before this returns. With ops NULL nothing is called: the program polls by itself, with
 * mlx5vfio_pollfds() and mlx5vfio_timeout_ms().
 *
 * Returns NULL with errno EINVAL (NULL ctx, an ops without watch, timer or release), EOPNOTSUPP
 * (not a ctx of libmlx5's VFIO driver), EBUSY (this ctx is attached already, or its fd belongs to
 * another attached device, which was then closed without a detach), EBADF (the ctx's fd is closed),
 * ENOMEM, or the error of watch or timer. After a failure nothing is watched, release is not
 * called, and loop belongs to the caller as before.
 */
MLX5VFIO_API struct mlx5vfio *mlx5vfio_attach(struct ibv_context *ctx,
					      const struct mlx5vfio_loop_ops *ops, void *loop);

/*
 * Tells that fd is ready with revents (bits of poll(2); POLLNVAL or POLLERR for a loop's error on
 * it), or with fd -1 that the timer fired. Handlers run from inside; afterwards dev may be gone if
 * one of them detached it. Early or needless calls do no harm. Returns 0, or -EINVAL for NULL and
 * for an fd that is not the device's.
 */
MLX5VFIO_API int mlx5vfio_process(struct mlx5vfio *dev, int fd, int revents);

/* Tells that what release stands for is done. dev is gone afterwards. */
MLX5VFIO_API void mlx5vfio_released(struct mlx5vfio *dev);

/*
 * For polling by hand: writes up to n pollfds and returns how many there are (which may be more
 * than n, and 0 when nothing is watched). Ask again after every mlx5vfio_process().
 */
MLX5VFIO_API int mlx5vfio_pollfds(const struct mlx5vfio *dev, struct pollfd *fds, int n);

/* Milliseconds until mlx5vfio_process(dev, -1, 0) is due: 0 for now, -1 for never. */
MLX5VFIO_API int mlx5vfio_timeout_ms(const struct mlx5vfio *dev);

#ifdef __cplusplus
}
#endif

#endif
