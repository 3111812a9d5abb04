/* SPDX-License-Identifier: BSD-3-Clause */
/* Which agent of a port is registered for which requests: a table by class, version and method. */
#pragma once

#include "mad/mad.h"

/* -EEXIST: another agent has one of those methods of that class and version; -ENOMEM. */
int mad_register(struct mad_port *port, struct mad_agent *a);
/* Its sends end without a word. */
void mad_unregister(struct mad_agent *a);

/* Who is registered for such a request, or NULL. */
struct mad_agent *mad_registered(const struct mad_port *port, const struct mad_hdr *hdr);

/* Does an agent of that class, of whatever version, know RMPP? */
bool mad_class_has_rmpp(const struct mad_port *port, uint8_t mgmt_class);

/* Gives the table's memory back; no agent is left. */
void mad_agents_free(struct mad_port *port);
