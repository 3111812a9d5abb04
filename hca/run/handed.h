/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues that others leave to this process: back, our own, because only we can carry out what is at
 * their head (exec_agent_hand_back()); over, those of peers, because only our functions reach the
 * memory to which it goes (exec_agent_hand_over()).  The agent finds them in its area.
 */
#pragma once

#include <stdbool.h>

struct agent_area;
struct exec;
struct hca_qp;

/*
 * For the agent: gives each of our own to its worker, and runs each of our peers'.  False: there
 * was none.
 */
bool handed_run(struct exec *x, struct agent_area *a);

/* qp, whose state says so, is going: waits until the agent runs its peer's queue no more. */
void handed_forget(struct hca_qp *qp);

void handed_forked_child(void);
