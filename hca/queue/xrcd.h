/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains. */
#pragma once

#include "hca/obj/srq.h"

/* One who has the target QP destroys it: true if nobody else has it. */
bool xrcd_last_close(struct hca_qp *qp);
