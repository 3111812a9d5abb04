/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP port 4791 in weft status. */
#pragma once

#include <jansson.h>

struct server;

/* Whether it is open or who has it, and counts. */
json_t *wire_status(const struct server *s);

/* Packets that went nowhere, by the reason's name. */
json_t *wire_status_drops(const struct server *s);

/* Which queue pair numbers go to which socket, and whose that is. */
json_t *wire_status_steered(const struct server *s);
