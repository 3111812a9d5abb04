/* SPDX-License-Identifier: BSD-3-Clause */
/* Which fds are rsockets. */
#pragma once

#include "rsock/rsock.h"

/* A new one with its event channel, entered under its fd, one reference.  -ENOMEM, -ENODEV ... */
int rs_create(int family, int type, struct rsocket **out);

/* The rsocket of that fd with one more reference, NULL: it is none. */
struct rsocket *rs_find(int fd);

/* Gives a reference back; the last one frees it.  Not under its lock. */
void rs_release(struct rsocket *s);

/* Out of the table: nobody finds it any more.  False: somebody else has done so. */
bool rs_withdraw(struct rsocket *s);

/* What public functions begin with: the rsocket under its lock, or NULL with errno EBADF. */
struct rsocket *rs_enter(int fd);

/* And end with: ret, or -1 with errno, of a count or a negative errno. */
int64_t rs_leave(struct rsocket *s, int64_t ret);
