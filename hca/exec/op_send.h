/* SPDX-License-Identifier: BSD-3-Clause */
/* SEND. */
#pragma once

#include "hca/exec/work.h"

/* Executes a SEND. */
enum step op_send(struct work *w);

/*
 * The same, w->plain: without lists if both ends have one piece and the payload fits where its
 * owner copies it out; else all of op_send().
 */
enum step op_send_plain(struct work *w);

/*
 * Brings w->length bytes of src into that receive and says in *r where.  False: the request, and
 * perhaps the receive, ended in *s (which is STEP_DONE for UC).
 */
bool op_send_place(
	struct work *w, struct payload *src, struct held *held, struct received *r, enum step *s);

/* Finds the next receive and brings the request's bytes into it; else as op_send_place(). */
bool op_send_payload(struct work *w, struct received *r, enum step *s);
