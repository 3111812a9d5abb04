/* SPDX-License-Identifier: BSD-3-Clause */
/* How a work request ends that fails: at its requester, and at its responder. */
#pragma once

#include "hca/exec/work.h"

/* One more completion with that status. */
void work_count_error(struct exec *x, enum ibv_wc_status status);

/* Completes it in error, moves the requester to ERR and flushes it. */
void work_fail(struct work *w, enum ibv_wc_status status);

/* The same; STEP_FAILED. */
enum step work_failed(struct work *w, enum ibv_wc_status status);

/* The responder's verdict on a request; a UC requester never hears of it. */
enum step work_blame(struct work *w, enum ibv_wc_status status);

/* The responder found the request at fault: it goes to ERR too, with an event. */
enum step work_fail_both(struct work *w, enum ibv_wc_status status, enum ibv_event_type event);

/* The same where range_remote() or flush_range() refused these rights. */
enum step work_fail_range(struct work *w, unsigned need);

/* The responder's own receive is at fault: it completes in error there, and the request, too. */
enum step work_receive_failed(
	struct work *w, enum ibv_wc_status recv_status, enum ibv_wc_status send_status);

/* What to do when a move of an RDMA operation or of a SEND did not end well. */
enum step work_move_failed(struct work *w, enum move_result r, enum ibv_wc_status remote);

/* Did the move fail on the requester's memory?  (The mover knows only local and remote.) */
bool work_requester_fault(enum move_result r, bool requester_here);
