/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#pragma once

#include "hca/obj/srq.h"

/* Requesters wait for receives, and one may have come: serves those whose QPs are ours. */
void srq_serve(struct hca_srq *srq);
