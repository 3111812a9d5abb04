/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory. */
#pragma once

#include "hca/obj/mr.h"

/* A region of device memory is gone; 0. */
int dm_drop(struct hca_mr *mr);

/* In a forked child: locks that other threads of the parent may have held. */
void dm_forked_child(void);
