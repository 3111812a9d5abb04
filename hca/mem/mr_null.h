/* SPDX-License-Identifier: BSD-3-Clause */
/* The region that reads zeros and swallows what is written (hca_mr_null()). */
#pragma once

/* In a forked child: the lock, which another thread of the parent may have held. */
void mr_null_forked_child(void);
