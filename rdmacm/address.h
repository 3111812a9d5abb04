/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of ids. */
#pragma once

#include "rdmacm/rdmacm.h"

int addr_from_sockaddr(const struct sockaddr *sa, struct cm_addr *a);

/* ps: the port space of a service id. */
void addr_to_sockaddr(const struct cm_addr *a, uint16_t ps, struct sockaddr_storage *ss);

bool addr_is_any(const struct cm_addr *a);

/* Shows the addresses of the id to the program. */
void ident_show_addresses(struct ident *id);

int ident_attach_device(struct ident *id);

int ident_bind(struct ident *id, const struct cm_addr *addr);
