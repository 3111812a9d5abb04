/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of kinds of regions; a new one is a row here, and what registers it. */
#pragma once

#include "hca/obj/mr_kind.h"

extern const struct mr_kind mr_memory;      /* the program's own */
extern const struct mr_kind mr_on_demand;   /* ... wherever its addresses lead at the time */
extern const struct mr_kind mr_of_fd;       /* a file or dma-buf; of: where it was mapped for us */
extern const struct mr_kind mr_of_dm;       /* device memory; of: struct hca_dm */
extern const struct mr_kind mr_peer_direct; /* a client's, at addresses of ours, while it lives */
extern const struct mr_kind mr_peer_owned;  /* ... anywhere, and the client may take it away */
extern const struct mr_kind mr_null;        /* reads zeros; of: where what is written goes */
extern const struct mr_kind mr_export;      /* no region: memory that others may map */
