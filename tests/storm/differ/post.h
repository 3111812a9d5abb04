/* SPDX-License-Identifier: BSD-3-Clause */
/* How the requests and receives of a plan are posted. */
#pragma once

#include "end.h"

/* Posts the requests of this end, some of them in lists, in one thread or two. */
void post_requests(struct end *e);
/* Posts n receives more of those planned, in the order of the lanes; how many are left. */
unsigned post_receives(struct end *e, unsigned n);

/* How many receives a lane gets: those after a fault may not be there. */
unsigned post_receives_of(const struct end *e, unsigned lane);

uint64_t wr_id_of(const struct end *e, unsigned index);
