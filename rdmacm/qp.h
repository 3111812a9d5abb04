/* SPDX-License-Identifier: BSD-3-Clause */
/* The transitions of an id's queue pair. */
#pragma once

#include "rdmacm/rdmacm.h"

int qp_to_connected(struct ident *id);

void qp_to_error(struct ident *id);

/* Attributes of the next state; mask is set. */
int qp_attributes(struct ident *id, struct ibv_qp_attr *attr, int *mask);
