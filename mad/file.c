// SPDX-License-Identifier: BSD-3-Clause
#include "mad/file.h"

#include <errno.h>
#include <string.h>

#include "wire/mad.h"

static int refuse(int error, const char *text, const char **why)
{
	*why = text;
	return -error;
}

/* The lowest free slot, or -ENOMEM. */
static int free_slot(const struct umad_file *f, uint32_t *slot, const char **why)
{
	uint32_t is_free = ~f->slots;

	if (!is_free)
		return refuse(ENOMEM, "all 32 agents of the file are registered", why);
	*slot = (uint32_t)__builtin_ctz(is_free);
	return 0;
}

/* ---- registrations ---- */

static int check(const struct umad_port *port, struct mad_registration *reg, const char **why)
{
	if (!reg->qpn && !port->has_smi)
		return refuse(EPROTONOSUPPORT, "the port has no QP0", why);
	/* Nobody looks at the rest of one that only sends. */
	if (!reg->mgmt_class)
		*reg = (struct mad_registration){.qpn = reg->qpn,
			.rmpp_version = reg->rmpp_version,
			.user_rmpp = reg->user_rmpp};
	else if (!mad_class_has_oui(reg->mgmt_class))
		reg->oui = 0;
	return mad_registration_check(reg, why);
}

static uint64_t two_words(const uint32_t *w)
{
	uint64_t v;

	memcpy(&v, w, sizeof v);
	return v;
}

static int check_qpn(const struct umad_port *port, uint32_t qpn, const char **why)
{
	if (port->gone)
		return refuse(EPIPE, "the device is gone", why);
	return qpn > 1 ? refuse(EINVAL, "the QP must be 0 or 1", why) : 0;
}

int umad_check_req(const struct umad_file *f, const struct umad_port *port,
	const struct umad_reg_req *req, struct mad_registration *reg, uint32_t *slot,
	const char **why)
{
	int error = check_qpn(port, req->qpn, why);

	*reg = (struct mad_registration){
		.qpn = req->qpn,
		.mgmt_class = req->mgmt_class,
		.class_version = req->class_version,
		.methods = {two_words(&req->method_mask[0]), two_words(&req->method_mask[2])},
		.oui = (uint32_t)req->oui[0] << 16 | req->oui[1] << 8 | req->oui[2],
		.rmpp_version = req->rmpp_version,
	};
	if (!error)
		error = free_slot(f, slot, why);
	return error ? error : check(port, reg, why);
}

int umad_check_req2(const struct umad_file *f, const struct umad_port *port,
	struct umad_reg_req2 *req, struct mad_registration *reg, uint32_t *slot, const char **why)
{
	int error = check_qpn(port, req->qpn, why);

	*reg = (struct mad_registration){
		.qpn = req->qpn,
		.mgmt_class = req->mgmt_class,
		.class_version = req->class_version,
		.methods = {req->method_mask[0], req->method_mask[1]},
		.oui = req->oui,
		.rmpp_version = req->rmpp_version,
		.user_rmpp = req->flags & UMAD_USER_RMPP,
	};
	if (!error && req->flags & ~(uint32_t)UMAD_FLAGS_CAP) {
		req->flags = UMAD_FLAGS_CAP;
		error = refuse(EINVAL, "flags that are not supported", why);
	}
	if (!error)
		error = free_slot(f, slot, why);
	if (!error && reg->mgmt_class && reg->oui > UMAD_OUI_MAX)
		error = refuse(EINVAL, "the OUI has more than 24 bits", why);
	return error ? error : check(port, reg, why);
}

/* ---- slots and layout ---- */

void umad_registered(struct umad_file *f, uint32_t slot, bool by_req2)
{
	f->slots |= 1u << slot;
	if (!f->used)
		f->pkey |= by_req2;
	f->used = true;
}

int umad_unregistered(struct umad_file *f, uint32_t slot)
{
	if (slot >= UMAD_AGENTS || !(f->slots >> slot & 1))
		return -EINVAL;
	f->slots &= ~(1u << slot);
	return 0;
}

int umad_enable_pkey(struct umad_file *f)
{
	if (f->used)
		return -EINVAL;
	f->pkey = true;
	return 0;
}
