/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reliable multi-packet transaction protocol: the 12 bytes behind the MAD header by which
 * messages longer than one MAD are cut into segments (InfiniBand Architecture, volume 1, 13.6).
 */
#pragma once

#include "wire/mad.h"

enum {
	RMPP_VERSION = 1,
	RMPP_AT = 24,
	RMPP_SIZE = 12,
	RMPP_PAYLOAD = 220, /* bytes behind the RMPP header; what PayloadLength counts */
};

enum rmpp_type { RMPP_DATA = 1, RMPP_ACK, RMPP_STOP, RMPP_ABORT };

enum rmpp_flag { RMPP_ACTIVE = 1, RMPP_FIRST = 2, RMPP_LAST = 4 };

enum rmpp_status {
	RMPP_OK = 0,
	RMPP_NO_RESOURCES = 1,  /* of a STOP */
	RMPP_ABORT_FIRST = 118, /* those from here on are an ABORT's */
	RMPP_TOO_LONG = 118,    /* the total time is over */
	RMPP_BAD_LENGTH = 119,  /* LAST and PayloadLength do not fit together */
	RMPP_BAD_SEGMENT = 120, /* FIRST and the segment number do not */
	RMPP_BAD_TYPE = 121,
	RMPP_WINDOW_TOO_SMALL = 122,
	RMPP_SEGMENT_TOO_BIG = 123,
	RMPP_BAD_STATUS = 124,
	RMPP_BAD_VERSION = 125,
	RMPP_TOO_MANY_TRIES = 126,
	RMPP_ABORT_LAST = 127, /* unspecified */
};

struct rmpp_hdr {
	uint8_t version;
	uint8_t type;
	uint8_t resp_time; /* 5 bits */
	uint8_t flags;     /* 3 bits */
	uint8_t status;
	uint32_t segment; /* of an ACK: the last one that came */
	uint32_t length;  /* PayloadLength; of an ACK: NewWindowLast */
};

extern const struct wire_format rmpp_hdr_format;

/* Where the data of a segment begin in MADs of that class, in bytes; 0: it has no RMPP. */
unsigned rmpp_data_at(uint8_t mgmt_class);

/* Is it a segment, or says something about segments?  Its class has RMPP, and the flag is set. */
bool rmpp_is_active(const uint8_t mad[MAD_SIZE]);
