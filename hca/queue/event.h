/* SPDX-License-Identifier: BSD-3-Clause */
/* Async events. */
#pragma once

#include <stdint.h>

/* The QP or SRQ, or the CQ, of that index goes: takes back its async events that nobody has got. */
void qp_forget_events(uint32_t index);
void cq_forget_events(uint32_t index);
