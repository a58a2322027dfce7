/* SPDX-License-Identifier: BSD-2-Clause */
/* Every scenario ends with nothing left: no fd, nothing on the loop, no mapping in the device. */
#ifndef CONFORMANCE_SCENARIOS_H
#define CONFORMANCE_SCENARIOS_H

#include "driver.h"

/* attach.c: attaching, being refused, the end of the memory. */
void attach_detach_at_once(const struct loop_driver *driver);
void attach_many_rounds(const struct loop_driver *driver);
void attach_reopened_device(const struct loop_driver *driver);
void attach_fd_number_reused(const struct loop_driver *driver);
void attach_wrong_ctx(const struct loop_driver *driver);
void attach_null_loop(const struct loop_driver *driver);
void attach_closed_fd(const struct loop_driver *driver);
void attach_twice(const struct loop_driver *driver);
void attach_fd_of_another(const struct loop_driver *driver);
void attach_forget(const struct loop_driver *driver);

/* events.c: what the device sends is handled, whoever wakes up. */
void events_page_requests(const struct loop_driver *driver);
void events_burst(const struct loop_driver *driver);
void events_lost_interrupt(const struct loop_driver *driver);
void events_spurious_interrupt(const struct loop_driver *driver);
void events_taken_by_a_command(const struct loop_driver *driver);
void events_signal_storm(const struct loop_driver *driver);
void events_statistics(const struct loop_driver *driver);

/* errors.c: failures are told once, bounded, and recovered from. */
void errors_of_libmlx5(const struct loop_driver *driver);
void errors_of_firmware(const struct loop_driver *driver);
void errors_interrupted_call(const struct loop_driver *driver);
void errors_closed_fd(const struct loop_driver *driver);
void errors_on_fd(const struct loop_driver *driver);
void errors_on_fd_do_not_spin(const struct loop_driver *driver);

/* detach.c: detach in the middle of things. */
void detach_in_error_handler(const struct loop_driver *driver);
void detach_in_health_handler(const struct loop_driver *driver);
void detach_of_another(const struct loop_driver *driver);
void detach_in_own_callback(const struct loop_driver *driver);

/* close.c: closed by the library. */
void close_in_the_background(const struct loop_driver *driver);
void close_in_health_handler(const struct loop_driver *driver);

/* ticks.c: the rhythm. */
void ticks_together(const struct loop_driver *driver);
void ticks_after_a_block(const struct loop_driver *driver);
void ticks_set_late(const struct loop_driver *driver);
void ticks_limits(const struct loop_driver *driver);

/* alive.c: what keeps the loop running. */
void alive_unref(const struct loop_driver *driver);
void alive_unref_refused(const struct loop_driver *driver);
void alive_until_detached(const struct loop_driver *driver);

/* faults.c: a device dies. */
void faults_each(const struct loop_driver *driver);
void faults_before_attach(const struct loop_driver *driver);
void faults_without_handler(const struct loop_driver *driver);
void faults_asked_for(const struct loop_driver *driver);
void faults_beside_a_healthy_one(const struct loop_driver *driver);
void faults_warning(const struct loop_driver *driver);
void handlers_replaced(const struct loop_driver *driver);

/* eq.c: event queues. */
void queue_port_changes(const struct loop_driver *driver);
void queue_storm(const struct loop_driver *driver);
void queue_budget(const struct loop_driver *driver);
void queue_closed_in_handler(const struct loop_driver *driver);
void queue_reopened_in_handler(const struct loop_driver *driver);
void queue_closed_with_device(const struct loop_driver *driver);
void queue_device_detached_in_handler(const struct loop_driver *driver);
void queue_device_dies(const struct loop_driver *driver);

#endif
