/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Topologies by a few numbers (a SPEC, weft-fabric(5)): hosts H0, H1 and so on with one port, then
 * switches S0, S1 and so on, all 4x EDR.
 */
#pragma once

#include "topo/build.h"

/* Whether the text is meant as a SPEC, which may be wrong: a generator's name and a colon. */
bool generate_is_spec(const char *text);

/* Makes the topology of the SPEC.  0, -EINVAL or -ENOMEM with the reason in error. */
int generate(struct topo *out, const char *spec, char error[TOPO_ERROR]);
