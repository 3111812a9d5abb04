/* SPDX-License-Identifier: BSD-3-Clause */
/* What ids are found by: owner and handle, their own number, their peer's, their peer's QP. */
#pragma once

#include "cm/cm.h"

void id_set_handle(struct cm_id *id, uint32_t owner, uint32_t handle);
struct cm_id *id_find(const struct cm *cm, uint32_t owner, uint32_t handle);

/* Gives it a communication id of its own and enters it. */
void id_set_comm(struct cm_id *id, uint32_t comm);
struct cm_id *id_by_comm(const struct cm *cm, uint32_t local_comm);

/* Enters it under its peer's communication id; takes it out again, which forgets that. */
void id_set_remote(struct cm_id *id, uint32_t remote_comm);
void id_clear_remote(struct cm_id *id);
struct cm_id *id_by_remote(const struct cm *cm, uint32_t remote_comm, const uint8_t remote_gid[16]);

/* Enters it under its peer's adapter and queue pair, as long as it is connected. */
void id_set_remote_qp(struct cm_id *id);
void id_clear_remote_qp(struct cm_id *id);
/*
 * The id that is connected to that QP of the adapter with that GUID and GID, both: clones of one
 * machine may have a GUID in common.  NULL: none, or the GID is ours.
 */
struct cm_id *id_by_remote_qp(
	const struct cm *cm, uint64_t guid, const uint8_t gid[16], uint32_t qpn);

/* Out of all tables. */
void id_leave_tables(struct cm_id *id);
