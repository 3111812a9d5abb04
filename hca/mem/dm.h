/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory. */
#pragma once

#include "hca/obj/mr.h"

/* A region of device memory was deregistered. */
void dm_region_gone(struct hca_dm *dm);

/* In a forked child: locks that other threads of the parent may have held. */
void dm_forked_child(void);
