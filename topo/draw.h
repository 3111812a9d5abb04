/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of a topology. */
#pragma once

#include <stdio.h>

#include "topo/topo.h"

/* For Graphviz's dot(1).  0 or -ENOMEM. */
int topo_draw_dot(const struct topo *t, FILE *out);

/*
 * As an SVG that needs nothing else.  Each wire ends where its port has its place on the node's
 * box; up to DRAW_DETAIL nodes the ports' numbers stand there.  0 or -ENOMEM.
 */
int topo_draw_svg(const struct topo *t, FILE *out);

enum { DRAW_DETAIL = 100 };
