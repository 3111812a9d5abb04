/* SPDX-License-Identifier: BSD-3-Clause */
/* Work for a thread of the shim's. */
#pragma once

#include <linux/kernel.h>
#include <linux/types.h>

struct work_struct;
typedef void (*work_func_t)(struct work_struct *work);

struct work_struct {
	work_func_t func;
	struct work_struct *next; /* the shim's */
	int state;
};

#define INIT_WORK(work, fn)    (*(work) = (struct work_struct){.func = (fn)})
#define DECLARE_WORK(name, fn) struct work_struct name = {.func = (fn)}
#define flush_scheduled_work() kshim_flush_work(NULL)

/* False: it waits already.  Its function may free it. */
bool schedule_work(struct work_struct *work);

/* Returns when it neither waits nor runs; true: it did.  The second takes it off if it waits. */
bool flush_work(struct work_struct *work);
bool cancel_work_sync(struct work_struct *work);

/* As flush_work(), of all work for NULL. */
bool kshim_flush_work(struct work_struct *work);
