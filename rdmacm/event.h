/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of an id. */
#pragma once

#include "rdmacm/rdmacm.h"

/* For synchronous ids: waits for the next event and keeps it in id->event. */
int ident_complete(struct ident *id);

/* An event of id's own making. */
int ident_put_event(struct ident *id, int type, int status);
