/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes, and to which id. */
#pragma once

#include "cm/cm.h"

void on_lap(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void on_apr(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

/* The id of ours with that number, if its peer has the other one, and the message is from there. */
struct cm_id *id_of(
	struct cm *cm, const struct mad_addr *from, uint32_t local_comm, uint32_t remote_comm);

/*
 * The id of ours with that number whose request waits for a first answer in that state: its peer's
 * number is not known yet, but the answer has the request's transaction id.
 */
struct cm_id *id_of_request(struct cm *cm, const struct mad_addr *from, uint32_t local_comm,
	uint64_t tid, enum cm_state state);
