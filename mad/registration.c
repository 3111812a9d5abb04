// SPDX-License-Identifier: BSD-3-Clause
#include "mad/registration.h"

#include <errno.h>
#include <stddef.h>

#include "wire/mad.h"
#include "wire/rmpp.h"

static bool no_such_qp(const struct mad_registration *r)
{
	return r->qpn > 1;
}

static bool wide_oui(const struct mad_registration *r)
{
	return r->oui >> MAD_OUI_BITS;
}

static bool rmpp_of_nothing(const struct mad_registration *r)
{
	return r->user_rmpp && !r->mgmt_class;
}

static bool no_such_rmpp(const struct mad_registration *r)
{
	return r->rmpp_version > RMPP_VERSION;
}

static bool no_such_version(const struct mad_registration *r)
{
	return r->mgmt_class && r->class_version >= MAD_REGISTERED_VERSIONS;
}

static bool no_such_class(const struct mad_registration *r)
{
	return r->mgmt_class >= MAD_REGISTERED_CLASSES && r->mgmt_class != MAD_CLASS_SUBN_DR;
}

static bool no_oui(const struct mad_registration *r)
{
	return mad_class_has_oui(r->mgmt_class) && !r->oui;
}

static bool no_rmpp_class(const struct mad_registration *r)
{
	return r->rmpp_version && r->mgmt_class && !rmpp_data_at(r->mgmt_class);
}

static bool other_qp(const struct mad_registration *r)
{
	return r->mgmt_class && r->qpn != mad_class_qp(r->mgmt_class);
}

/* The first that is broken is the reason. */
static const struct {
	bool (*broken)(const struct mad_registration *r);
	const char *why;
} rules[] = {
	{no_such_qp, "the queue pair is neither 0 nor 1"},
	{wide_oui, "the OUI has more than 24 bits"},
	{rmpp_of_nothing, "segments of its own need a class"},
	{no_such_rmpp, "the RMPP version is neither 0 nor 1"},
	{no_such_version, "the class version is 0x83 or more"},
	{no_such_class, "the class is 80 or more, and not 0x81"},
	{no_oui, "vendor classes from 0x30 on need an OUI"},
	{no_rmpp_class, "the class has no RMPP"},
	{other_qp, "classes 0x01 and 0x81 belong to QP0, all others to QP1"},
};

int mad_registration_check(const struct mad_registration *r, const char **why)
{
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		if (!rules[i].broken(r))
			continue;
		if (why)
			*why = rules[i].why;
		return -EINVAL;
	}
	return 0;
}
