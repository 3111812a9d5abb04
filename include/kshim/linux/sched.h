/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads. */
#pragma once

#include <linux/mm.h>
#include <linux/types.h>

struct task_struct {
	int pid, tgid;
	char comm[16];
	struct mm_struct *mm;
	struct task_struct *group_leader;
};

/* One for each thread, always at the same place. */
#define current kshim_current()
struct task_struct *kshim_current(void);

/* Lets others run. */
void schedule(void);
#define cond_resched() schedule()
