/* SPDX-License-Identifier: BSD-3-Clause */
/* The performance management agent of all nodes. */
#pragma once

#include "subnet/carry.h"

/* A MAD on QP1 has arrived. */
enum agent_said pma_handle(struct subnet *s, struct flight *f);
