// SPDX-License-Identifier: BSD-3-Clause
#include "mad/packet.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "mad/tids.h"
#include "wire/mad.h"
#include "wire/rmpp.h"

_Static_assert((int)UMAD_MAD_BYTES == (int)MAD_SIZE, "a record holds a MAD");
_Static_assert(offsetof(struct umad_record, mad) == UMAD_HDR_SIZE, "a record is what is written");

static int refuse(int error, const char *text, const char **why)
{
	*why = text;
	return -error;
}

/* ---- addresses ---- */

struct mad_addr umad_addr_of(const struct umad_hdr *h, const uint8_t local_gid[MAD_GID])
{
	struct mad_addr a = {
		.lid = be16toh(h->be_lid),
		.path_bits = h->path_bits,
		.sl = h->sl,
		.has_grh = h->grh_present,
		.pkey_index = h->pkey_index,
		.qpn = be32toh(h->be_qpn),
	};

	a.qkey = a.qpn ? UMAD_GSI_QKEY : 0;
	if (!a.has_grh)
		return a;
	memcpy(a.grh.local, local_gid, MAD_GID);
	memcpy(a.grh.remote, h->gid, MAD_GID);
	a.grh.flow_label = be32toh(h->be_flow_label);
	a.grh.traffic_class = h->traffic_class;
	a.grh.hop_limit = h->hop_limit;
	return a;
}

void umad_tell_addr(struct umad_hdr *h, const struct mad_addr *from, uint8_t gid_index)
{
	h->be_qpn = htobe32(from->qpn);
	h->be_lid = htobe16(from->lid);
	h->sl = from->sl;
	h->path_bits = from->path_bits;
	h->pkey_index = from->pkey_index;
	h->grh_present = from->has_grh;
	if (!from->has_grh)
		return;
	h->gid_index = gid_index;
	h->hop_limit = from->grh.hop_limit;
	h->traffic_class = from->grh.traffic_class;
	memcpy(h->gid, from->grh.remote, MAD_GID);
	h->be_flow_label = htobe32(from->grh.flow_label);
}

/* ---- write ---- */

static int check_address(const struct umad_sender *s, const struct umad_hdr *h, const char **why)
{
	if (!h->grh_present)
		return s->needs_grh ? refuse(EINVAL, "no GRH on an Ethernet port", why) : 0;
	if (h->gid_index >= s->n_gids)
		return refuse(ENODATA, "there is no GID of that index", why);
	return 0;
}

static int check_length(uint64_t agent, const uint8_t *mad, struct umad_send *out, const char **why)
{
	uint8_t mgmt_class = mad[1];

	bool by_layer = umad_agent_rmpp(agent) == UMAD_RMPP_LAYER && rmpp_data_at(mgmt_class);

	out->rmpp = by_layer && rmpp_is_active(mad);
	out->no_rmpp = by_layer && !out->rmpp;
	if (out->length < rmpp_data_at(mgmt_class))
		return refuse(EINVAL, "the MAD is shorter than its class's header", why);
	if (!out->rmpp && out->length > MAD_SIZE)
		return refuse(EINVAL, "more than 256 bytes, and not by RMPP", why);
	if (umad_agent_rmpp(agent) != UMAD_RMPP_NONE && !rmpp_data_at(mgmt_class))
		return refuse(EINVAL, "an agent with RMPP, a class without", why);
	return 0;
}

static uint64_t destination(const struct umad_hdr *h)
{
	return h->grh_present ? hash_bytes(h->gid, sizeof h->gid, 1)
			      : hash_bytes(&h->be_lid, sizeof h->be_lid, 0);
}

/* The transaction id that the MAD gets, and what it is a duplicate of. */
static void identify(uint64_t agent, const uint8_t *mad, struct umad_send *out)
{
	struct mad_hdr hdr;
	bool response;

	mad_hdr_unpack(mad, &hdr);
	response = mad_is_response(&hdr);
	out->tid =
		response ? hdr.tid : (uint64_t)umad_agent_hi_tid(agent) << 32 | (uint32_t)hdr.tid;
	/* The program's own segments: each is one of many with the same id. */
	out->listed = !(umad_agent_rmpp(agent) != UMAD_RMPP_LAYER && rmpp_is_active(mad));
	out->hash = tids_hash(
		out->tid, hdr.mgmt_class, response, response ? destination(&out->hdr) : 0);
}

/* After the sizes: the header is in *out. */
static int check_send(
	const struct umad_sender *s, const uint8_t *mad, struct umad_send *out, const char **why)
{
	uint64_t agent;
	int error;

	if (out->hdr.id >= UMAD_AGENTS)
		return refuse(EINVAL, "there is no agent of that number", why);
	agent = atomic_load_explicit(&s->agents[out->hdr.id], memory_order_acquire);
	if (!agent || s->gone)
		return refuse(EIO, "nobody is registered there, or the device is gone", why);
	error = check_address(s, &out->hdr, why);
	if (!error)
		error = check_length(agent, mad, out, why);
	if (!error)
		identify(agent, mad, out);
	return error;
}

int umad_check_write(const struct umad_sender *s, const void *head, size_t count,
	struct umad_send *out, const char **why)
{
	size_t hdr_size = umad_hdr_size(s->pkey);

	if (count < hdr_size + UMAD_WRITE_MIN)
		return refuse(EINVAL, "shorter than a header and 36 bytes", why);
	*out = (struct umad_send){.length = count - hdr_size};
	memcpy(&out->hdr, head, hdr_size);
	return check_send(s, (const uint8_t *)head + hdr_size, out, why);
}

int umad_check_record(const struct umad_sender *s, const struct umad_record *rec,
	struct umad_send *out, const char **why)
{
	if (rec->flags & ~(uint32_t)UMAD_RECORD_LONG || rec->length < UMAD_WRITE_MIN ||
		(rec->length > MAD_SIZE) != !!(rec->flags & UMAD_RECORD_LONG))
		return refuse(EINVAL, "no write makes such a record", why);
	*out = (struct umad_send){.hdr = rec->hdr, .length = rec->length};
	return check_send(s, rec->mad, out, why);
}

static void set_mad(struct umad_record *rec, const uint8_t *mad, uint32_t length, uint64_t message)
{
	rec->length = length;
	if (length > MAD_SIZE) {
		rec->flags = UMAD_RECORD_LONG;
		rec->message = message;
	}
	memcpy(rec->mad, mad, length < MAD_SIZE ? length : MAD_SIZE);
}

void umad_make_record(
	const struct umad_send *out, const uint8_t *mad, uint64_t message, struct umad_record *rec)
{
	*rec = (struct umad_record){.hdr = out->hdr};
	set_mad(rec, mad, out->length, message);
	if (out->no_rmpp)
		memset(rec->mad + RMPP_AT, 0, RMPP_SIZE);
}

/* ---- what was received ---- */

void umad_make_received(uint32_t slot, const struct mad_addr *from, uint8_t gid_index, bool pkey,
	const uint8_t *mad, uint32_t length, uint64_t message, struct umad_record *rec)
{
	*rec = (struct umad_record){
		.hdr = {.id = slot, .length = (uint32_t)umad_hdr_size(pkey) + length}};
	umad_tell_addr(&rec->hdr, from, gid_index);
	set_mad(rec, mad, length, message);
}

void umad_make_timeout(
	const struct umad_hdr *written, const uint8_t mad[MAD_HDR_SIZE], struct umad_record *rec)
{
	*rec = (struct umad_record){.hdr = *written};
	rec->hdr.status = ETIMEDOUT;
	set_mad(rec, mad, MAD_HDR_SIZE, 0);
}

/* Of the bytes that rec says it has; who else has the file may have written that. */
static size_t length_of(const struct umad_record *rec)
{
	if (rec->length <= MAD_SIZE || rec->flags & UMAD_RECORD_LONG)
		return rec->length;
	return MAD_SIZE;
}

ssize_t umad_read_result(const struct umad_record *rec, bool pkey, size_t count, size_t *copy)
{
	size_t hdr_size = umad_hdr_size(pkey), length = length_of(rec);
	size_t first = length < MAD_SIZE ? length : MAD_SIZE;

	*copy = 0;
	if (count < hdr_size + first)
		return -EINVAL;
	*copy = hdr_size + first;
	if (count < hdr_size + length)
		return -ENOSPC;
	return (ssize_t)(hdr_size + length);
}

void umad_copy_out(const struct umad_record *rec, bool pkey, void *buf, size_t bytes)
{
	size_t hdr_size = umad_hdr_size(pkey);
	size_t header = bytes < hdr_size ? bytes : hdr_size, mad = bytes - header;

	memcpy(buf, &rec->hdr, header);
	memcpy((char *)buf + header, rec->mad, mad < MAD_SIZE ? mad : MAD_SIZE);
}
