/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent registers for, and the rules that say which registrations make sense. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	MAD_REGISTERED_CLASSES = 80,    /* classes below it, and directed-route SMPs */
	MAD_REGISTERED_VERSIONS = 0x83, /* class versions below it */
	MAD_OUIS_MAX = 8,               /* of one class and version of a port */
	MAD_OUI_BITS = 24,
};

struct mad_registration {
	uint32_t qpn;       /* 0 or 1 */
	uint8_t mgmt_class; /* 0: it only sends, and hears the responses; what follows up to oui is
			       0 */
	uint8_t class_version;
	uint64_t methods[2];  /* bit n: requests of method n; none: as class 0 */
	uint32_t oui;         /* of the classes that have one; else ignored */
	uint8_t rmpp_version; /* 0 or 1 */
	bool user_rmpp;       /* its segments come and go as they are */
};

/*
 * Is it one that ib_umad takes, whoever else is registered?  -EINVAL: no, and *why says what is
 * wrong (not touched on success; NULL: of no interest).  Pure.
 */
int mad_registration_check(const struct mad_registration *r, const char **why);

/* Does the layer cut and assemble messages of segments (RMPP) for it?  Else they come as MADs. */
static inline bool mad_registration_has_rmpp(const struct mad_registration *r)
{
	return r->rmpp_version && !r->user_rmpp;
}
