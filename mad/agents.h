/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which agents there are: by the upper half of their transaction ids, and of each port by class,
 * version, OUI and method that they are registered for.
 */
#pragma once

#include "mad/mad.h"

/*
 * The agent hears from now on; its memory stays where it is.  -EINVAL: against the rules of
 * mad/registration.h, or another agent of the port has one of those methods of that class, version
 * and OUI; -EPROTONOSUPPORT: QP0 of a port without; -ENOMEM, also: MAD_OUIS_MAX others are there.
 */
int mad_register(struct mad_port *port, struct mad_agent *a);
/* Its sends end without a word. */
void mad_unregister(struct mad_agent *a);

/* Who is registered for such a request, or NULL. */
struct mad_agent *mad_registered(
	const struct mad_port *port, const struct mad_hdr *hdr, const uint8_t mad[MAD_SIZE]);

/* Whose transaction id it is, or NULL. */
struct mad_agent *mad_agent_of_tid(const struct mad_port *port, uint64_t tid);
