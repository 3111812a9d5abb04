/* SPDX-License-Identifier: BSD-3-Clause */
/* A port as sysfs has it. */
#pragma once

#include "umad/umad.h"

/* As numbered by the InfiniBand specification, in PortInfo. */
enum { PORT_STATE_DOWN = 1, PORT_STATE_ACTIVE = 4, PORT_PHYS_DISABLED = 3, PORT_PHYS_LINK_UP = 5 };

/*
 * Reads port portnum of device ca_name into *port; port->pkeys is the caller's, port_free() it.
 * -EIO if any part of it is missing; nothing is to be freed then.
 */
int port_read(const char *ca_name, int portnum, umad_port_t *port);

/* Frees what port_read() has allocated. */
void port_free(umad_port_t *port);

/* True unless its link layer is Ethernet. */
bool port_is_ib(const umad_port_t *port);

/* True unless its capability mask has IsSMdisabled. */
bool port_has_smi(const umad_port_t *port);

/* The number N of the port's files umadN and issmN, -ENODEV if it has none. */
int port_umad_number(const char *ca_name, int portnum);
