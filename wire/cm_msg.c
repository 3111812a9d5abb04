// SPDX-License-Identifier: BSD-3-Clause
#include "wire/cm_msg.h"

#include <errno.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define T        struct cm_req
static const struct wire_field req_fields[] = {
	WIRE_FIELD(T, local_comm_id, 24, 0, 32),
	WIRE_FIELD(T, vendor_id, 29, 0, 24),
	WIRE_FIELD(T, service_id, 32, 0, 64),
	WIRE_FIELD(T, ca_guid, 40, 0, 64),
	WIRE_FIELD(T, qkey, 52, 0, 32),
	WIRE_FIELD(T, qpn, 56, 0, 24),
	WIRE_FIELD(T, responder_resources, 59, 0, 8),
	WIRE_FIELD(T, local_eecn, 60, 0, 24),
	WIRE_FIELD(T, initiator_depth, 63, 0, 8),
	WIRE_FIELD(T, remote_eecn, 64, 0, 24),
	WIRE_FIELD(T, remote_timeout, 67, 0, 5),
	WIRE_FIELD(T, transport, 67, 5, 2),
	WIRE_FIELD(T, flow_control, 67, 7, 1),
	WIRE_FIELD(T, psn, 68, 0, 24),
	WIRE_FIELD(T, local_timeout, 71, 0, 5),
	WIRE_FIELD(T, retry_count, 71, 5, 3),
	WIRE_FIELD(T, pkey, 72, 0, 16),
	WIRE_FIELD(T, mtu, 74, 0, 4),
	WIRE_FIELD(T, rdc_exists, 74, 4, 1),
	WIRE_FIELD(T, rnr_retry, 74, 5, 3),
	WIRE_FIELD(T, max_cm_retries, 75, 0, 4),
	WIRE_FIELD(T, srq, 75, 4, 1),
	WIRE_FIELD(T, extended_transport, 75, 5, 3),
	WIRE_FIELD(T, primary.local_lid, 76, 0, 16),
	WIRE_FIELD(T, primary.remote_lid, 78, 0, 16),
	WIRE_FIELD(T, primary.local_gid, 80, 0, 128),
	WIRE_FIELD(T, primary.remote_gid, 96, 0, 128),
	WIRE_FIELD(T, primary.flow_label, 112, 0, 20),
	WIRE_FIELD(T, primary.rate, 115, 2, 6),
	WIRE_FIELD(T, primary.tclass, 116, 0, 8),
	WIRE_FIELD(T, primary.hop_limit, 117, 0, 8),
	WIRE_FIELD(T, primary.sl, 118, 0, 4),
	WIRE_FIELD(T, primary.subnet_local, 118, 4, 1),
	WIRE_FIELD(T, primary.ack_timeout, 119, 0, 5),
	WIRE_FIELD(T, alternate.local_lid, 120, 0, 16),
	WIRE_FIELD(T, alternate.remote_lid, 122, 0, 16),
	WIRE_FIELD(T, alternate.local_gid, 124, 0, 128),
	WIRE_FIELD(T, alternate.remote_gid, 140, 0, 128),
	WIRE_FIELD(T, alternate.flow_label, 156, 0, 20),
	WIRE_FIELD(T, alternate.rate, 159, 2, 6),
	WIRE_FIELD(T, alternate.tclass, 160, 0, 8),
	WIRE_FIELD(T, alternate.hop_limit, 161, 0, 8),
	WIRE_FIELD(T, alternate.sl, 162, 0, 4),
	WIRE_FIELD(T, alternate.subnet_local, 162, 4, 1),
	WIRE_FIELD(T, alternate.ack_timeout, 163, 0, 5),
	WIRE_FIELD(T, priv, 164, 0, CM_REQ_PRIV * 8),
};
#undef T

#define T struct cm_mra
static const struct wire_field mra_fields[] = {
	WIRE_FIELD(T, local_comm_id, 24, 0, 32),
	WIRE_FIELD(T, remote_comm_id, 28, 0, 32),
	WIRE_FIELD(T, about, 32, 0, 2),
	WIRE_FIELD(T, service_timeout, 33, 0, 5),
	WIRE_FIELD(T, priv, 34, 0, CM_MRA_PRIV * 8),
};
#undef T

#define T struct cm_rej
static const struct wire_field rej_fields[] = {
	WIRE_FIELD(T, local_comm_id, 24, 0, 32),
	WIRE_FIELD(T, remote_comm_id, 28, 0, 32),
	WIRE_FIELD(T, about, 32, 0, 2),
	WIRE_FIELD(T, ari_length, 33, 0, 7),
	WIRE_FIELD(T, reason, 34, 0, 16),
	WIRE_FIELD(T, ari, 36, 0, CM_REJ_ARI * 8),
	WIRE_FIELD(T, priv, 108, 0, CM_REJ_PRIV * 8),
};
#undef T

#define T struct cm_rep
static const struct wire_field rep_fields[] = {
	WIRE_FIELD(T, local_comm_id, 24, 0, 32),
	WIRE_FIELD(T, remote_comm_id, 28, 0, 32),
	WIRE_FIELD(T, qkey, 32, 0, 32),
	WIRE_FIELD(T, qpn, 36, 0, 24),
	WIRE_FIELD(T, vendor_id_h, 39, 0, 8),
	WIRE_FIELD(T, eecn, 40, 0, 24),
	WIRE_FIELD(T, vendor_id_m, 43, 0, 8),
	WIRE_FIELD(T, psn, 44, 0, 24),
	WIRE_FIELD(T, vendor_id_l, 47, 0, 8),
	WIRE_FIELD(T, responder_resources, 48, 0, 8),
	WIRE_FIELD(T, initiator_depth, 49, 0, 8),
	WIRE_FIELD(T, target_ack_delay, 50, 0, 5),
	WIRE_FIELD(T, failover, 50, 5, 2),
	WIRE_FIELD(T, flow_control, 50, 7, 1),
	WIRE_FIELD(T, rnr_retry, 51, 0, 3),
	WIRE_FIELD(T, srq, 51, 3, 1),
	WIRE_FIELD(T, ca_guid, 52, 0, 64),
	WIRE_FIELD(T, priv, 60, 0, CM_REP_PRIV * 8),
};
#undef T

#define T struct cm_rtu
static const struct wire_field rtu_fields[] = {
	WIRE_FIELD(T, local_comm_id, 24, 0, 32),
	WIRE_FIELD(T, remote_comm_id, 28, 0, 32),
	WIRE_FIELD(T, priv, 32, 0, CM_RTU_PRIV * 8),
};
#undef T

#define T struct cm_dreq
static const struct wire_field dreq_fields[] = {
	WIRE_FIELD(T, local_comm_id, 24, 0, 32),
	WIRE_FIELD(T, remote_comm_id, 28, 0, 32),
	WIRE_FIELD(T, remote_qpn, 32, 0, 24),
	WIRE_FIELD(T, priv, 36, 0, CM_DREQ_PRIV * 8),
};
#undef T

#define T struct cm_drep
static const struct wire_field drep_fields[] = {
	WIRE_FIELD(T, local_comm_id, 24, 0, 32),
	WIRE_FIELD(T, remote_comm_id, 28, 0, 32),
	WIRE_FIELD(T, priv, 32, 0, CM_DREP_PRIV * 8),
};
#undef T

#define T struct cm_sidr_req
static const struct wire_field sidr_req_fields[] = {
	WIRE_FIELD(T, request_id, 24, 0, 32),
	WIRE_FIELD(T, pkey, 28, 0, 16),
	WIRE_FIELD(T, service_id, 32, 0, 64),
	WIRE_FIELD(T, priv, 40, 0, CM_SIDR_REQ_PRIV * 8),
};
#undef T

#define T struct cm_sidr_rep
static const struct wire_field sidr_rep_fields[] = {
	WIRE_FIELD(T, request_id, 24, 0, 32),
	WIRE_FIELD(T, status, 28, 0, 8),
	WIRE_FIELD(T, info_length, 29, 0, 8),
	WIRE_FIELD(T, qpn, 32, 0, 24),
	WIRE_FIELD(T, service_id, 36, 0, 64),
	WIRE_FIELD(T, qkey, 44, 0, 32),
	WIRE_FIELD(T, info, 48, 0, CM_SIDR_REP_INFO * 8),
	WIRE_FIELD(T, priv, 120, 0, CM_SIDR_REP_PRIV * 8),
};
#undef T

#define T struct cm_lap
static const struct wire_field lap_fields[] = {
	WIRE_FIELD(T, local_comm_id, 24, 0, 32),
	WIRE_FIELD(T, remote_comm_id, 28, 0, 32),
	WIRE_FIELD(T, remote_qpn, 36, 0, 24),
	WIRE_FIELD(T, remote_timeout, 39, 0, 5),
	WIRE_FIELD(T, alternate.local_lid, 44, 0, 16),
	WIRE_FIELD(T, alternate.remote_lid, 46, 0, 16),
	WIRE_FIELD(T, alternate.local_gid, 48, 0, 128),
	WIRE_FIELD(T, alternate.remote_gid, 64, 0, 128),
	WIRE_FIELD(T, alternate.flow_label, 80, 0, 20),
	WIRE_FIELD(T, alternate.tclass, 83, 0, 8),
	WIRE_FIELD(T, alternate.hop_limit, 84, 0, 8),
	WIRE_FIELD(T, alternate.rate, 85, 2, 6),
	WIRE_FIELD(T, alternate.sl, 86, 0, 4),
	WIRE_FIELD(T, alternate.subnet_local, 86, 4, 1),
	WIRE_FIELD(T, alternate.ack_timeout, 87, 0, 5),
	WIRE_FIELD(T, priv, 88, 0, CM_LAP_PRIV * 8),
};
#undef T

#define T struct cm_apr
static const struct wire_field apr_fields[] = {
	WIRE_FIELD(T, local_comm_id, 24, 0, 32),
	WIRE_FIELD(T, remote_comm_id, 28, 0, 32),
	WIRE_FIELD(T, info_length, 32, 0, 8),
	WIRE_FIELD(T, status, 33, 0, 8),
	WIRE_FIELD(T, info, 36, 0, CM_APR_INFO * 8),
	WIRE_FIELD(T, priv, 108, 0, CM_APR_PRIV * 8),
};
#undef T

static const struct wire_format formats[CM_ATTR_END] = {
	[CM_REQ] = {"REQ", req_fields, COUNT(req_fields)},
	[CM_MRA] = {"MRA", mra_fields, COUNT(mra_fields)},
	[CM_REJ] = {"REJ", rej_fields, COUNT(rej_fields)},
	[CM_REP] = {"REP", rep_fields, COUNT(rep_fields)},
	[CM_RTU] = {"RTU", rtu_fields, COUNT(rtu_fields)},
	[CM_DREQ] = {"DREQ", dreq_fields, COUNT(dreq_fields)},
	[CM_DREP] = {"DREP", drep_fields, COUNT(drep_fields)},
	[CM_SIDR_REQ] = {"SIDR_REQ", sidr_req_fields, COUNT(sidr_req_fields)},
	[CM_SIDR_REP] = {"SIDR_REP", sidr_rep_fields, COUNT(sidr_rep_fields)},
	[CM_LAP] = {"LAP", lap_fields, COUNT(lap_fields)},
	[CM_APR] = {"APR", apr_fields, COUNT(apr_fields)},
};

static const struct wire_format *format_of(uint16_t attr)
{
	return attr < CM_ATTR_END && formats[attr].n ? &formats[attr] : NULL;
}

int cm_msg_pack(const struct cm_msg *m, uint8_t mad[MAD_SIZE])
{
	const struct wire_format *f = format_of(m->hdr.attr);
	struct mad_hdr hdr = {
		.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_CM,
		.class_version = CM_CLASS_VERSION,
		.method = MAD_SEND,
		.tid = m->hdr.tid,
		.attr = m->hdr.attr,
		.attr_mod = m->hdr.attr_mod,
	};

	if (!f)
		return -EINVAL;
	memset(mad, 0, MAD_SIZE);
	wire_pack(&mad_hdr_format, &hdr, mad);
	wire_pack(f, &m->req, mad);
	return 0;
}

int cm_msg_unpack(const uint8_t mad[MAD_SIZE], struct cm_msg *m)
{
	const struct wire_format *f;

	memset(m, 0, sizeof *m);
	wire_unpack(&mad_hdr_format, mad, &m->hdr);
	f = format_of(m->hdr.attr);
	if (!f || m->hdr.base_version != MAD_BASE_VERSION || m->hdr.mgmt_class != MAD_CLASS_CM ||
		m->hdr.class_version != CM_CLASS_VERSION || m->hdr.method != MAD_SEND)
		return -EINVAL;
	wire_unpack(f, mad, &m->req);
	return 0;
}

size_t cm_msg_print(const struct cm_msg *m, char *buf, size_t size)
{
	static const struct wire_format unknown = {"not a CM message", NULL, 0};
	const struct wire_format *f = format_of(m->hdr.attr);

	return wire_print(f ? f : &unknown, &m->req, buf, size);
}

static const struct wire_field ip_fields[] = {
	WIRE_FIELD(struct cm_ip_hdr, version, 0, 0, 8),
	WIRE_FIELD(struct cm_ip_hdr, ip_version, 1, 0, 4),
	WIRE_FIELD(struct cm_ip_hdr, src_port, 2, 0, 16),
	WIRE_FIELD(struct cm_ip_hdr, src, 4, 0, 128),
	WIRE_FIELD(struct cm_ip_hdr, dst, 20, 0, 128),
};

static const struct wire_format ip_format = {"IP", ip_fields, COUNT(ip_fields)};

void cm_ip_hdr_pack(const struct cm_ip_hdr *h, uint8_t *msg)
{
	memset(msg, 0, CM_IP_HDR_SIZE);
	wire_pack(&ip_format, h, msg);
}

void cm_ip_hdr_unpack(const uint8_t *msg, struct cm_ip_hdr *h)
{
	wire_unpack(&ip_format, msg, h);
}
