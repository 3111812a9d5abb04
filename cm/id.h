/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of cm/, not for others. */
#pragma once

#include "cm/cm.h"

enum {
	CM_EXTENDED_XRC = 1, /* transport service of a REQ that is for XRC */
	CM_PSN_MASK = 0xffffff,
	CM_QPN_MASK = 0xffffff,
};

/* Values of enum rdma_cm_event_type, which belongs to a layer above. */
enum cm_event_type {
	CM_EV_CONNECT_REQUEST = 4,
	CM_EV_CONNECT_RESPONSE = 5,
	CM_EV_UNREACHABLE = 7,
	CM_EV_REJECTED = 8,
	CM_EV_ESTABLISHED = 9,
	CM_EV_DISCONNECTED = 10,
	CM_EV_TIMEWAIT_EXIT = 15,
};

/* NULL without memory, or when there are CM_IDS_MAX. */
struct cm_id *id_new(struct cm *cm, uint32_t owner, uint32_t handle, uint32_t channel);
void id_free(struct cm_id *id);
/* A communication id that nobody can guess; no other id has it. */
uint32_t id_new_comm(struct cm *cm);
/* Was it given by an earlier weftd, and may its owner still have to publish it again? */
bool is_of_earlier_weftd(const struct cm *cm, uint32_t local_comm);
/* A transaction id that nobody can guess. */
uint64_t id_new_tid(const struct cm *cm);
/* It is in that state from now on, and in those tables alone that go with it. */
void id_enter(struct cm_id *id, enum cm_state state);
/* Is its peer on another host? */
bool id_is_far(const struct cm_id *id);

/* Tells the owner.  e: type, status and, where they matter, param and priv are filled in. */
void id_event(struct cm_id *id, struct cm_event *e);
void id_event_simple(struct cm_id *id, uint32_t type, int status);

/* Sends m along the path of id; repeat: until it is answered.  It replaces what was pending. */
void id_send(struct cm_id *id, struct cm_msg *m, bool repeat);
/* The same, each timeout_ms, 1 + retries times. */
void id_repeat(struct cm_id *id, const struct cm_msg *m, uint32_t timeout_ms, uint32_t retries);
void id_cancel(struct cm_id *id);
/* Its connection has ended: it stays known for a while. */
void id_timewait(struct cm_id *id);
/* Fills in attr, tid and the communication ids of an answer. */
struct cm_msg id_msg(const struct cm_id *id, uint16_t attr);

/* Sends REJ; about: enum cm_about.  If it answers a request, it does so again if that comes again.
 */
void id_reject(struct cm_id *id, uint8_t about, uint16_t reason, const uint8_t *priv, uint8_t len);
/* Answers a message that no id belongs to. */
void cm_answer_rej(struct cm *cm, const struct mad_addr *from, uint64_t tid, uint32_t local_comm,
	uint32_t remote_comm, uint8_t about, uint16_t reason);
/* Packs and sends without an id. */
void cm_post(struct cm *cm, const struct mad_addr *to, struct cm_msg *m);
