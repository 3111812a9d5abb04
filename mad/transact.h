/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sends of a layer that wait for something: a table by transaction id and class.  Their memory
 * is used again, so that a MAD costs no allocation once there were as many at a time.
 */
#pragma once

#include "mad/mad.h"

/* An empty one of that agent, in no table yet; NULL without memory. */
struct mad_send *mad_send_get(struct mad_agent *a);

/* Gives it back; it is in no table. */
void mad_send_put(struct mad_layer *layer, struct mad_send *s);

/* By what is in its first MAD.  -ENOMEM: the very first table could not be made. */
int mad_table_add(struct mad_send *s);
void mad_table_del(struct mad_send *s);

/* The first send with that transaction id and class; the next one like s.  NULL: no more. */
struct mad_send *mad_table_first(const struct mad_layer *layer, uint64_t tid, uint8_t mgmt_class);
struct mad_send *mad_table_next(const struct mad_send *s);

/* May what came from there, a response or not, be about s?  By addresses alone. */
bool mad_fits_peer(const struct mad_send *s, const struct mad_addr *from, bool is_response);

/* What of the agent's waits for a response with this header from there, or NULL. */
struct mad_send *mad_awaiting(
	const struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr);

/*
 * May the agent send it while what it, or another agent of its file, sent before is under way?
 * -EINVAL: no, a request with that transaction id and class is; or a response with them, to the
 * same peer.  Segments of an agent without RMPP of the layer always may.
 */
int mad_check_duplicate(
	const struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE]);

/* Gives all memory back; no send is left. */
void mad_table_free(struct mad_layer *layer);
