/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

struct check;

/* The libraries that WEFT_PEER_CLIENTS names: loads each in a process of its own. */
void check_peer_clients(struct check *c);

/* Whether memory of GPUs can be registered: by programs that load their driver. */
void check_gpus(struct check *c);
