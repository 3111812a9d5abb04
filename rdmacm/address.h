/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of ids. */
#pragma once

#include "rdmacm/rdmacm.h"

int addr_from_sockaddr(const struct sockaddr *sa, struct cm_addr *a);

/* ps: the port space of a service id. */
void addr_to_sockaddr(const struct cm_addr *a, uint16_t ps, struct sockaddr_storage *ss);

bool addr_is_any(const struct cm_addr *a);

/*
 * The first bits of a service id, as far as they are given, name the port space: -EPROTONOSUPPORT
 * if that is not the id's.  Addresses of other kinds: 0.
 */
int addr_check_port_space(const struct ident *id, const struct sockaddr *sa);

/* Shows the addresses of the id to the program. */
void ident_show_addresses(struct ident *id);

int ident_attach_device(struct ident *id);

int ident_bind(struct ident *id, const struct cm_addr *addr);

/* The same for one that is resolved without a port: it gets one that was lent to us. */
int ident_bind_to_any_port(struct ident *id);
