/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing an fd of an endpoint, which may have others. */
#pragma once

struct scif_ep;

/* The caller closed an fd of it: takes it down if that was the last; wakes who polls it. */
void ep_let_go(struct scif_ep *ep);
