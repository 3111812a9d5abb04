/* SPDX-License-Identifier: BSD-3-Clause */
/* Other sizes of receive queues with several producers. */
#pragma once

#include "hca/obj/srq.h"

/*
 * Makes room for so many receives; the lock of posting is held.  -EINVAL more wait in it, -ENOMEM.
 * May wait for a stopped peer that is filling one.
 */
int own_rxq_resize(struct hca_rxq *rxq, uint32_t depth);
