/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between windows, and between memory and windows. */
#pragma once

#include "scif/ep/copy.h"

struct scif_ep;

/* scif_writeto() and its kin, without conversion of errors. */
int rma_copy(struct scif_ep *ep, const struct rma_args *args);
