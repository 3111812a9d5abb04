/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address of `weft up --address`: a weftd that is started anew finds it in NAME.address of the
 * runtime directory, which rdv/address.h writes.
 */
#pragma once

#include "daemon/port/lock.h"
#include "rdv/paths.h"

/* All addresses if there is no such file, or what it says is none (logged). */
void wire_place_get(const struct rdv_paths *p, struct wire_place *out);
