/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "topo/reader.h"

/* Finds the other end of each link that was read; both ends have to say the same.  0 or -EINVAL. */
int wire_all(struct reader *r);
