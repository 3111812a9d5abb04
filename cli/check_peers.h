/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

struct check;

/* The libraries that WEFT_PEER_CLIENTS names; loads none. */
void check_peer_clients(struct check *c);
