/* SPDX-License-Identifier: BSD-3-Clause */
/* What weftd does when its own fds become ready: see server.watch members of these names. */
#pragma once

#include "daemon/server.h"

/* Leaves. */
void events_signal(struct server *s, struct watch *w, uint32_t events);
/* Runs the timers that expired. */
void events_timer(struct server *s, struct watch *w, uint32_t events);
/* Publishes the host's addresses as they are now; w->fd may be -1. */
void events_addrs(struct server *s, struct watch *w, uint32_t events);

/* Publishes the page of weft0 as device files. */
void events_write_files(struct server *s);

/* Fills in the functions of s->env. */
void events_env(struct server *s);
