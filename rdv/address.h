/* SPDX-License-Identifier: BSD-3-Clause */
/* The one address of this machine that a fabric has, for `weft up --address`. */
#pragma once

#include <stdint.h>

/*
 * Starts weftd, to stay, for a fabric that has that address alone, loopback aside: an IPv4 or IPv6
 * address as text.  It stands in NAME.address of the runtime directory, for a weftd that is started
 * anew too, until rdv_shutdown(), or rdv_forget_address() where weftd does not run any more.
 * fabric, *pid and common errors as in rdv/admin.h.  -EEXIST, not logged: a weftd serves that
 * fabric already.
 */
int rdv_start_at(const char *fabric, const char *address, int32_t *pid);

/* Removes what a weftd that was killed has left of it. */
void rdv_forget_address(const char *fabric);
