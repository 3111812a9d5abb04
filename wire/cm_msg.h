/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the communication manager (IBA volume 1, chapter 12): MADs of class 7, version 2,
 * method Send.  Members are named as IBA names the fields, in host order; GIDs and private data
 * are bytes.
 */
#pragma once

#include <stdbool.h>

#include "wire/mad.h"

enum { CM_CLASS_VERSION = 2 };

/* Attribute of the header: which message it is. */
enum cm_attr {
	CM_REQ = 0x10,
	CM_MRA = 0x11,
	CM_REJ = 0x12,
	CM_REP = 0x13,
	CM_RTU = 0x14,
	CM_DREQ = 0x15,
	CM_DREP = 0x16,
	CM_SIDR_REQ = 0x17,
	CM_SIDR_REP = 0x18,
	CM_LAP = 0x19,
	CM_APR = 0x1a,
	CM_ATTR_END
};

/* Reasons of REJ. */
enum cm_rej_reason {
	CM_REJ_NO_RESOURCES = 3,
	CM_REJ_TIMEOUT = 4,
	CM_REJ_UNSUPPORTED = 5,
	CM_REJ_INVALID_COMM_ID = 6,
	CM_REJ_INVALID_COMM_INSTANCE = 7,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_INVALID_TRANSPORT = 9,
	CM_REJ_STALE_CONN = 10,
	CM_REJ_RDC_NOT_EXIST = 11,
	CM_REJ_INVALID_GID = 12,
	CM_REJ_CONSUMER_DEFINED = 28,
	CM_REJ_VENDOR_OPTION = 35,
};

/* Which message an MRA or REJ is about. */
enum cm_about { CM_ABOUT_REQ = 0, CM_ABOUT_REP = 1, CM_ABOUT_OTHER = 2 };

enum cm_sidr_status {
	CM_SIDR_OK = 0,
	CM_SIDR_UNSUPPORTED = 1,
	CM_SIDR_REJECTED = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_REDIRECT = 4,
	CM_SIDR_VERSION = 5,
};

/* Status of APR: alternate paths are refused. */
enum { CM_APR_UNSUPPORTED = 2, CM_APR_INVALID_COMM_ID = 1 };

enum {
	CM_REQ_PRIV = 92,
	CM_MRA_PRIV = 222,
	CM_REJ_ARI = 72,
	CM_REJ_PRIV = 148,
	CM_REP_PRIV = 196,
	CM_RTU_PRIV = 224,
	CM_DREQ_PRIV = 220,
	CM_DREP_PRIV = 224,
	CM_SIDR_REQ_PRIV = 216,
	CM_SIDR_REP_INFO = 72,
	CM_SIDR_REP_PRIV = 136,
	CM_LAP_PRIV = 168,
	CM_APR_INFO = 72,
	CM_APR_PRIV = 148,
};

struct cm_path {
	uint16_t local_lid, remote_lid;
	uint8_t local_gid[16], remote_gid[16];
	uint32_t flow_label;
	uint8_t rate;
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t subnet_local;
	uint8_t ack_timeout;
};

struct cm_req {
	uint32_t local_comm_id;
	uint32_t vendor_id;
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qkey;
	uint32_t qpn;
	uint8_t responder_resources;
	uint32_t local_eecn;
	uint8_t initiator_depth;
	uint32_t remote_eecn;
	uint8_t remote_timeout;
	uint8_t transport;
	uint8_t flow_control;
	uint32_t psn; /* at which the receiver of the REQ starts to send */
	uint8_t local_timeout;
	uint8_t retry_count;
	uint16_t pkey;
	uint8_t mtu;
	uint8_t rdc_exists;
	uint8_t rnr_retry;
	uint8_t max_cm_retries;
	uint8_t srq;
	uint8_t extended_transport;
	struct cm_path primary, alternate;
	uint8_t priv[CM_REQ_PRIV];
};

struct cm_mra {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t about;
	uint8_t service_timeout;
	uint8_t priv[CM_MRA_PRIV];
};

struct cm_rej {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t about;
	uint8_t ari_length;
	uint16_t reason;
	uint8_t ari[CM_REJ_ARI];
	uint8_t priv[CM_REJ_PRIV];
};

struct cm_rep {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t qkey;
	uint32_t qpn;
	uint8_t vendor_id_h;
	uint32_t eecn;
	uint8_t vendor_id_m;
	uint32_t psn; /* at which the receiver of the REP starts to send */
	uint8_t vendor_id_l;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay;
	uint8_t failover;
	uint8_t flow_control;
	uint8_t rnr_retry;
	uint8_t srq;
	uint64_t ca_guid;
	uint8_t priv[CM_REP_PRIV];
};

struct cm_rtu {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t priv[CM_RTU_PRIV];
};

struct cm_dreq {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn;
	uint8_t priv[CM_DREQ_PRIV];
};

struct cm_drep {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t priv[CM_DREP_PRIV];
};

struct cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t priv[CM_SIDR_REQ_PRIV];
};

struct cm_sidr_rep {
	uint32_t request_id;
	uint8_t status;
	uint8_t info_length;
	uint32_t qpn;
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[CM_SIDR_REP_INFO];
	uint8_t priv[CM_SIDR_REP_PRIV];
};

struct cm_lap {
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn;
	uint8_t remote_timeout;
	struct cm_path alternate;
	uint8_t priv[CM_LAP_PRIV];
};

struct cm_apr {
	uint32_t local_comm_id, remote_comm_id;
	uint8_t info_length;
	uint8_t status;
	uint8_t info[CM_APR_INFO];
	uint8_t priv[CM_APR_PRIV];
};

struct cm_msg {
	struct mad_hdr hdr; /* attr says which member holds */
	union {
		struct cm_req req;
		struct cm_mra mra;
		struct cm_rej rej;
		struct cm_rep rep;
		struct cm_rtu rtu;
		struct cm_dreq dreq;
		struct cm_drep drep;
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
		struct cm_lap lap;
		struct cm_apr apr;
	};
};

/* Writes the MAD of m, whose hdr.attr says what it is; all of the header but attr, attr_mod and
 * tid is filled in.  -EINVAL: no such message. */
int cm_msg_pack(const struct cm_msg *m, uint8_t mad[MAD_SIZE]);

/* Reads a MAD.  -EINVAL: not a message of the communication manager. */
int cm_msg_unpack(const uint8_t mad[MAD_SIZE], struct cm_msg *m);

/* Writes it as text, cut off at size; returns the length that it wanted to write. */
size_t cm_msg_print(const struct cm_msg *m, char *buf, size_t size);

/*
 * What the IP-based port spaces put before the user's data in REQ and SIDR_REQ: version 0, the
 * addresses, and the port of the sender.  The receiver's port is in the service id.
 */
enum { CM_IP_HDR_SIZE = 36 };

struct cm_ip_hdr {
	uint8_t version;    /* 0 */
	uint8_t ip_version; /* 4 or 6 */
	uint16_t src_port;
	uint8_t src[16]; /* an IPv4 address in the last four bytes */
	uint8_t dst[16];
};

void cm_ip_hdr_pack(const struct cm_ip_hdr *h, uint8_t *msg);
void cm_ip_hdr_unpack(const uint8_t *msg, struct cm_ip_hdr *h);
