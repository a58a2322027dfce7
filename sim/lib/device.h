/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One simulated device: its registers, commands, event queues and pages. Everything here is called
 * with the engine's lock held. Errors are negative errnos.
 */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../common/naming.h"
#include "../mlx5vfio_sim.h"
#include "idset.h"
#include "pageset.h"

enum {
	PAGE_SIZE = 4096,
	COMMAND_SLOTS = 32,
	MSIX_VECTORS = 64,
	MAX_EQS = 80, /* more than there are vectors */
	FIRST_UAR = 16,
	BAR_PAGES = 256, /* as much of BAR0 as we ever look at */
	BOOT_PAGES = 64,
	INIT_PAGES = 256,
	MAX_FAIL_RULES = 16,
	MAX_PAGE_JOBS = 32,
	MAX_EVENT_JOBS = 64,
	ANY_OPCODE = -1,
};

/* Registers, as byte offsets in BAR0. */
enum {
	REG_FW_REV = 0x0,
	REG_CMDIF_REV = 0x4,
	REG_CMDQ_HIGH = 0x10,
	REG_CMDQ_LOW = 0x14,
	REG_CMD_DOORBELL = 0x18,
	REG_INITIALIZING = 0x1fc,
	REG_HEALTH = 0x200,
	REG_COUNTER = 0x1010,
	REGISTERS_SIZE = 2 * PAGE_SIZE,
	UAR_EQ_ARM = 0x40,
	UAR_EQ_UPDATE = 0x48,
};

enum event_type {
	EVENT_COMPLETION = 0x00,
	EVENT_CQ_ERROR = 0x04,
	EVENT_QP_CATASTROPHIC = 0x05,
	EVENT_PORT = 0x09,
	EVENT_COMMAND = 0x0a,
	EVENT_PAGES = 0x0b,
};

enum nic_state {
	NIC_FULL = 0,
	NIC_DISABLED = 1,
	NIC_RESET = 7,
};

struct fail_rule {
	int opcode;
	uint8_t status;
	uint64_t left;
};

struct faults {
	/* Cured by a function-level reset. */
	uint8_t syndrome;
	uint16_t extended;
	bool recovery;
	enum nic_state nic;
	bool offline, frozen, hung;
	/* Until they are ended. */
	bool init_stuck, memory_limited;
	uint64_t delay;  /* ns */
	uint64_t memory; /* bytes that may be mapped, if limited */
	uint64_t lose_interrupts, map_fail;
	struct fail_rule fail[MAX_FAIL_RULES];
};

/* What the kernel has told the program and asked of it, until the device is closed. */
struct notices {
	uint64_t request_every, request_due; /* 0: it does not want the device back */
	uint64_t offline_due;                /* a PCI error on its way to be fatal; 0: none */
	bool unbinding;
};

struct slot {
	bool waiting; /* seen by us, not yet executed */
	uint64_t due;
};

struct eq {
	uint8_t number;
	bool armed, broken;
	unsigned vector, page_shift;
	uint32_t uar, entries;
	uint64_t events;             /* bit mask of event types */
	uint32_t producer, consumer; /* count entries, never wrapped to the queue */
	bool uncertain;              /* a doorbell may have been lost: more may be consumed */
	bool arm_doubtful;           /* an arm may have been lost since the last that was seen */
	uint64_t quiet_since;        /* last change, for lost arms */
	uint32_t rescued_at;         /* producer at the last rescue */
	unsigned rescues;            /* in vain: each waits twice as long as the one before */
	uint64_t pages[];
};

struct page_job {
	int32_t pages; /* negative: asked back */
	uint64_t left, every, due;
	bool spaced;
};

/* Events for one queue, see event_jobs.c. */
struct event_job {
	uint8_t queue, type, sub_type;
	bool numbered;   /* each bears its number within the job */
	bool alternates; /* a port that goes up and down */
	uint64_t left, written, every, due;
	uint8_t data[28];
};

struct cq_table {
	uint8_t *queues; /* by CQ number, the event queue it reports to, 0 for none */
	uint32_t room;
};

struct device {
	unsigned index;
	char name[SIM_NAME_SIZE];
	struct faults faults;
	struct mlx5vfio_sim_stats stats;
	uint64_t random;

	/* VFIO's view. */
	struct container *container;
	bool open;
	int fd, group_fd, lock_fd;
	int msix[MSIX_VECTORS];
	bool msix_on;
	int error_irq, request_irq;
	struct notices notices;

	/* Registers. */
	uint8_t *bar;
	uint8_t saved[REGISTERS_SIZE]; /* what offline hides */
	bool hidden;
	uint64_t hidden_until; /* 0: until it is healed */
	bool reset_unseen;     /* somebody else reset it: the program does not know */
	uint32_t counter;
	uint64_t counter_due;

	/* Firmware. */
	bool enabled, active, rescan;
	uint32_t seen;
	struct slot slots[COMMAND_SLOTS];
	struct eq *eqs[MAX_EQS];
	uint32_t uars[BAR_PAGES];
	unsigned uar_count;
	struct idset pds, mkeys, umems, domains, cqs, qps;
	struct cq_table cq_table;
	bool port_up;
	struct pageset startup, given;
	struct page_job jobs[MAX_PAGE_JOBS];
	unsigned job_count;
	struct event_job event_jobs[MAX_EVENT_JOBS];
	unsigned event_job_count;
	uint64_t unanswered, dropped; /* page requests */
};

/* device.c */
bool devices_init(unsigned count);
void devices_forget(void);
struct device *devices_begin(void);
struct device *devices_end(void);
struct device *device_at(unsigned index);
int device_open(struct device *dev, int fd);
void device_close(struct device *dev);
void device_reset(struct device *dev);
void device_foreign_reset(struct device *dev);

/* One look at everything. Returns true when something happened; lowers *next to the next due time. */
bool device_step(struct device *dev, uint64_t now, uint64_t *next);
bool device_settled(const struct device *dev);
void device_refresh_stats(struct device *dev);
void violation(struct device *dev, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* registers.c */
void registers_reset(struct device *dev);
void registers_publish(struct device *dev);
void registers_hide_until(struct device *dev, uint64_t until);
bool registers_step(struct device *dev, uint64_t now);
volatile uint32_t *register_at(struct device *dev, size_t offset);
uint32_t register_read(struct device *dev, size_t offset);
void register_write(struct device *dev, size_t offset, uint32_t value);
uint32_t register_take(struct device *dev, size_t offset, uint32_t empty);

/* Commands are not executed: hung, offline, or the interface is down. */
bool device_blocked(const struct device *dev);

/* notices.c: removal requests and PCI errors, VFIO's REQ and ERR interrupts. */
void notices_request(struct device *dev, uint64_t every);
void notices_error(struct device *dev);
void notices_fatal_error(struct device *dev, uint64_t after);
int notices_unbind(struct device *dev);
bool notices_step(struct device *dev, uint64_t now, uint64_t *next);
void notices_end(struct device *dev);

/* command.c */
bool commands_step(struct device *dev, uint64_t now, uint64_t *next);
bool commands_waiting(const struct device *dev);

/* opcode.c */
struct command {
	struct device *dev;
	const uint8_t *in;
	uint8_t *out;
	size_t in_size, out_size;
};

void opcode_execute(struct command *cmd);

/* caps.c */
void caps_fill(uint8_t *out, unsigned type, bool current);

/* eq.c */
struct eq *eq_create(struct device *dev, const struct command *cmd, uint8_t *status);
void eq_destroy(struct device *dev, struct eq *eq);
void eq_query(struct device *dev, const struct eq *eq, uint8_t *out);
/* Doorbells that were rung while registers read ones are gone. */
void eq_doubt_arms(struct device *dev);
struct eq *eq_for(struct device *dev, enum event_type type);
uint32_t eq_backlog(const struct eq *eq);
void eq_post(struct device *dev, struct eq *eq, enum event_type type, uint8_t sub_type,
	     const uint8_t data[28]);
bool eqs_step(struct device *dev, uint64_t now);
void eq_doorbells(struct device *dev, uint64_t now);
void eq_overrun(struct device *dev, struct eq *eq);
void uar_add(struct device *dev, uint32_t uar);
bool uar_remove(struct device *dev, uint32_t uar);
void uar_clear_doorbells(struct device *dev, uint32_t uar);
void interrupt_raise(struct device *dev, unsigned vector);

/* events.c */
int page_job_add(struct device *dev, const struct page_job *job);
void page_jobs_stop(struct device *dev);
bool page_jobs_step(struct device *dev, uint64_t now, uint64_t *next);
void page_answer(struct device *dev);

/* event_jobs.c */
int event_job_add(struct device *dev, const struct event_job *job);
int event_job_add_all(struct device *dev, struct event_job job);
void event_jobs_forget(struct device *dev, const struct eq *eq);
bool event_jobs_step(struct device *dev, uint64_t now, uint64_t *next);

/* port.c */
void port_reset(struct device *dev);
void port_event(struct device *dev, bool up);
struct event_job port_job(bool up);
void port_flip(struct device *dev, struct event_job *job);
uint8_t port_access_register(struct command *cmd);
uint8_t port_datagram(struct command *cmd);
uint8_t port_vport(struct command *cmd);

/* cq.c */
uint8_t cq_create(struct command *cmd);
uint8_t cq_destroy(struct command *cmd);
struct eq *cq_reports_to(const struct device *dev, uint32_t number);
void cqs_lose_queue(struct device *dev, const struct eq *eq);
void cqs_forget(struct device *dev);

/* pages.c */
uint8_t pages_manage(struct command *cmd);
uint8_t pages_query(struct command *cmd);

#endif
