/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes by number. */
#pragma once

#include <linux/sched.h>

enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };

struct pid {
	int nr;
};

/* This process's, however often it is asked for. */
struct pid *get_task_pid(struct task_struct *task, enum pid_type type);
#define put_pid(pid)    ((void)(pid))
#define task_pid(task)  get_task_pid(task, PIDTYPE_PID)
#define pid_nr(pid)     ((pid)->nr)
#define task_tgid(task) get_task_pid(task, PIDTYPE_TGID)
