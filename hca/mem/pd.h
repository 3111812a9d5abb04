/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains (hca/api/hca.h has their calls). */
#pragma once

/* In a forked child: the lock, which another thread of the parent may have held. */
void pd_forked_child(void);
