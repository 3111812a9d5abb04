/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of a umad file, without any I/O: its agents' slots and what may be registered, in which
 * layout its headers are; as Linux' ib_umad has them.  weftd asks.  Whether a method is free on the
 * port is mad_register()'s to say; what is written and read is in mad/packet.h.
 */
#pragma once

#include "mad/registration.h"
#include "mad/umad_abi.h"

/* The port behind a file. */
struct umad_port {
	bool has_smi; /* an InfiniBand port: it has QP0 */
	bool gone;    /* the device was removed */
};

/* weftd's side of a file. */
struct umad_file {
	uint32_t slots; /* taken ones, a bit each */
	bool used;      /* something was registered: the layout stays what it is */
	bool pkey;      /* headers have pkey_index: the new layout */
};

/* Bytes of the header before each MAD. */
static inline size_t umad_hdr_size(bool pkey)
{
	return pkey ? UMAD_HDR_SIZE : UMAD_HDR_OLD;
}

/*
 * REGISTER_AGENT: may it be?  0: *reg is what is to be registered, for slot *slot, and
 * umad_registered() when it is.  -EPIPE: the port is gone; -ENOMEM: no slot is free;
 * -EPROTONOSUPPORT: QP0 of a port without one; -EINVAL.  *why: of an error, in words.
 */
int umad_check_req(const struct umad_file *f, const struct umad_port *port,
	const struct umad_reg_req *req, struct mad_registration *reg, uint32_t *slot,
	const char **why);

/*
 * REGISTER_AGENT2: the same.  The program gets req->flags back, also with an error: the supported
 * ones, where it named others.
 */
int umad_check_req2(const struct umad_file *f, const struct umad_port *port,
	struct umad_reg_req2 *req, struct mad_registration *reg, uint32_t *slot, const char **why);

/* The slot is taken.  by_req2: as the first it makes the layout the new one. */
void umad_registered(struct umad_file *f, uint32_t slot, bool by_req2);

/* UNREGISTER_AGENT: the slot is free again.  -EINVAL: it was, or there is none of that number. */
int umad_unregistered(struct umad_file *f, uint32_t slot);

/* ENABLE_PKEY.  -EINVAL: something was registered before. */
int umad_enable_pkey(struct umad_file *f);
