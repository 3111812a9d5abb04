/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections as objects, their states and deadlines. */
#pragma once

#include "ti/xfer/connection.h"

/* What a connection is made of. */
struct conn_parts {
	struct service *ti;
	struct pd *pd;
	struct cq *send_cq, *recv_cq; /* as connect() or listen() named them; NULL: accept() does */
};

/*
 * A connection with a handle; info's endpoints, domain and queues are not looked at.  The caller
 * has a reference and its lock: who ends the service waits until the connection is made.
 */
ti_status_t conn_new(const struct conn_parts *parts, const ti_conn_attr_t *attr,
	const ti_conn_info_t *info, struct conn **out);

/*
 * Queues may be destroyed from now on.  When all that was posted has come back, under lock or when
 * nobody else has it.
 */
void conn_free_queues(struct conn *c);

/* Queues and domain may, and are not touched any more: when nothing is under way. */
void conn_let_go(struct conn *c);

/* Under lock: state, and who waits for it is told. */
void conn_set_state(struct conn *c, enum conn_state state);

/* Sets when its time is up, counted from now; forgets it. */
void conn_set_due(struct conn *c);
void conn_clear_due(struct conn *c);

/* Its time is up. */
void conn_expired(struct conn *c);

/* Under lock: fails a request that is not ended in time, also if nobody has noticed yet. */
void conn_check_time(struct conn *c);
