/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the peer may write to: riomap(). */
#pragma once

#include "rsock/stream.h"

/* A message of the peer about its mappings.  -EPROTO. */
int iomap_heard(struct rsocket *s, enum rs_msg type, const struct rs_ctl *ctl);

void iomap_free_all(struct rsocket *s);
