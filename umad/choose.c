// SPDX-License-Identifier: BSD-3-Clause
#include "umad/choose.h"

#include <errno.h>
#include <stdio.h>

#include "umad/ca.h"
#include "umad/port.h"
#include "umad/umad.h"

enum rank { RANK_NONE, RANK_USABLE, RANK_ACTIVE };

static bool has_smi_if(const umad_port_t *port, bool smi)
{
	return !smi || port_has_smi(port);
}

static enum rank rank_given(const umad_ca_t *ca, int portnum, bool smi)
{
	const umad_port_t *port = ca_port(ca, portnum);

	if (!port || !port_is_ib(port) || !has_smi_if(port, smi))
		return RANK_NONE;
	if (port->state == PORT_STATE_ACTIVE)
		return RANK_ACTIVE;
	return port->phys_state == PORT_PHYS_DISABLED ? RANK_NONE : RANK_USABLE;
}

/* Of any link layer: last resort. */
static int first_enabled(const umad_ca_t *ca, bool smi)
{
	for (int i = 0; i <= ca->numports; i++)
		if (ca->ports[i] && has_smi_if(ca->ports[i], smi) &&
			ca->ports[i]->phys_state != PORT_PHYS_DISABLED)
			return i;
	return -1;
}

static enum rank best_port(const umad_ca_t *ca, bool smi, int *portnum)
{
	int up = -1;

	for (int i = 0; i <= ca->numports; i++) {
		const umad_port_t *port = ca->ports[i];

		if (!port || !port_is_ib(port) || !has_smi_if(port, smi))
			continue;
		if (port->state == PORT_STATE_ACTIVE) {
			*portnum = i;
			return RANK_ACTIVE;
		}
		if (up < 0 && port->phys_state == PORT_PHYS_LINK_UP)
			up = i;
	}
	if (up < 0)
		up = first_enabled(ca, smi);
	if (up < 0)
		return RANK_NONE;
	*portnum = up;
	return RANK_USABLE;
}

/* How good a device is, and with which port: *portnum, which is 0 if any will do. */
static enum rank rank_ca(const char *name, bool smi, int *portnum)
{
	enum rank rank = RANK_ACTIVE;
	umad_ca_t ca;

	if (ca_read(name, &ca))
		return RANK_NONE;
	if (ca.node_type == NODE_TYPE_SWITCH)
		*portnum = 0;
	else if (*portnum > 0)
		rank = rank_given(&ca, *portnum, smi);
	else
		rank = best_port(&ca, smi, portnum);
	ca_free(&ca);
	return rank;
}

static void set_choice(struct choice *out, const char *name, int portnum)
{
	snprintf(out->ca_name, sizeof out->ca_name, "%s", name);
	out->portnum = portnum;
}

static int choose_any(int wanted, bool smi, struct choice *out)
{
	struct umad_device_node *list = umad_get_ca_device_list(), *node;
	enum rank best = RANK_NONE;

	if (!list)
		return -ENODEV;
	set_choice(out, ca_nobody, 1);
	for (node = list; node && best != RANK_ACTIVE; node = node->next) {
		int portnum = wanted;
		enum rank rank = rank_ca(node->ca_name, smi, &portnum);

		if (rank <= best)
			continue;
		best = rank;
		set_choice(out, node->ca_name, portnum);
	}
	umad_free_ca_device_list(list);
	return 0;
}

int choose_port(const char *ca_name, int portnum, bool smi, struct choice *out)
{
	if (!ca_name)
		return choose_any(portnum, smi, out);
	if (!portnum && rank_ca(ca_name, smi, &portnum) == RANK_NONE)
		return -ENODEV;
	set_choice(out, ca_name, portnum);
	return 0;
}

int choose_ca(const char *ca_name, struct choice *out)
{
	if (!ca_name)
		return choose_any(0, false, out);
	set_choice(out, ca_name, 0);
	return 0;
}
