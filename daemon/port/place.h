/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address of `weft up --address`: a weftd that is started anew finds it in NAME.address of the
 * runtime directory, which rdv/address.h writes.
 */
#pragma once

#include "rdv/paths.h"
#include "roce/port/lock.h"

/* All addresses if there is no such file, or what it says is none (logged). */
void port_place_get(const struct rdv_paths *p, struct port_place *out);

/* The fabric ends for good: removes the file. */
void port_place_forget(const struct rdv_paths *p);
