/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent: one thread of this process that copies for peers which the kernel does not let at
 * our memory (pages/agent_slot.h is the protocol, hca/exec/exec_agent.h the peer's side).  It runs
 * while some connected peer needs it, and sleeps while none asks.
 */
#pragma once

/* One more peer needs the agent: starts it if it does not run.  Failures are logged. */
void agent_hold(void);

/* One less; the last one ends it.  Waits for the step it is in, at most one half's copy. */
void agent_drop(void);

/*
 * For slow paths: starts it if a peer was refused that should not have been.  Cheap if not.
 */
void agent_look(void);

void agent_forked_child(void);
