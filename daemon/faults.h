/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of faults: those of all processes, those of one; in their segments, where they look. */
#pragma once

#include <jansson.h>

#include "daemon/server.h"
#include "rdv/proto.h"

struct reply;

/* OP_FAULT.  -EINVAL: the text has no meaning; -ESRCH: no such process. */
int faults_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/*
 * A process is here, new or known to an earlier weftd: it gets the rules of all, or if nobody has
 * told us of any, we learn them from it.
 */
void faults_attached(struct server *s, struct process *p);

/* A process's rules and what they did: {"1 drop in": {"seen": 5, "done": 5}}.  The caller's. */
json_t *faults_of_process(const struct process *p);

/* The rules of all, as one text. */
json_t *faults_of_all(const struct server *s);
