// SPDX-License-Identifier: BSD-3-Clause
// Devices in pairs: the one that sends SMPs through a port, and the one that sends GMPs.  Mostly
// they are one; where an adapter shows a port as two devices, both have its GUID, and the one for
// GMPs has IsSMdisabled.  Ethernet ports are in no pair: there is no subnet behind them.
#include "umad/newer.h"

#include <errno.h>
#include <string.h>

#include "umad/ca.h"
#include "umad/port.h"

enum { CAS_MAX = 128, SEEN_MAX = CAS_MAX * UMAD_CA_MAX_PORTS };

/* A port of some device. */
struct seen {
	__be64 guid;
	char ca_name[UMAD_CA_NAME_LEN];
	bool smi;
};

struct survey {
	char names[CAS_MAX][UMAD_CA_NAME_LEN];
	struct seen port[SEEN_MAX];
	size_t n;
	__be64 pair_guid[CAS_MAX];
	size_t n_pairs;
};

static void see_ports(struct survey *s, const umad_ca_t *ca)
{
	for (int i = 0; i <= ca->numports; i++) {
		const umad_port_t *port = ca->ports[i];
		struct seen *seen = &s->port[s->n];

		if (!port || !port->port_guid || !port_is_ib(port))
			continue;
		*seen = (struct seen){.guid = port->port_guid, .smi = port_has_smi(port)};
		strcpy(seen->ca_name, ca->ca_name);
		s->n++;
	}
}

static void see_all(struct survey *s)
{
	int n = umad_get_cas_names(s->names, CAS_MAX);

	for (int i = 0; i < n; i++) {
		umad_ca_t ca;

		if (ca_read(s->names[i], &ca))
			continue;
		see_ports(s, &ca);
		ca_free(&ca);
	}
}

static bool is_shared(const struct survey *s, __be64 guid)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->port[i].guid == guid;
	return n > 1;
}

/* The number of the pair of that GUID, a new one if there is room below max; -1: there is not. */
static int pair_of(struct survey *s, __be64 guid, size_t max)
{
	for (size_t i = 0; i < s->n_pairs; i++)
		if (s->pair_guid[i] == guid)
			return (int)i;
	if (s->n_pairs == CAS_MAX || s->n_pairs >= max)
		return -1;
	s->pair_guid[s->n_pairs] = guid;
	return (int)s->n_pairs++;
}

static void join_pair(struct umad_ca_pair *pair, const struct seen *port, bool shared)
{
	if (port->smi)
		strcpy(pair->smi_name, port->ca_name);
	if (!port->smi || !shared)
		strcpy(pair->gsi_name, port->ca_name);
}

/* A device is in one pair, by its first port that finds room in one. */
static void make_pairs(struct survey *s, struct umad_ca_pair *pairs, size_t max)
{
	const char *paired = "";

	for (size_t i = 0; i < s->n; i++) {
		const struct seen *port = &s->port[i];
		int at = strcmp(port->ca_name, paired) ? pair_of(s, port->guid, max) : -1;

		if (at < 0)
			continue;
		join_pair(&pairs[at], port, is_shared(s, port->guid));
		paired = port->ca_name;
	}
}

int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max)
{
	struct survey *s = calloc(1, sizeof *s);
	int n;

	if (!s)
		return -1;
	memset(cas, 0, max * sizeof *cas);
	see_all(s);
	make_pairs(s, cas, max);
	n = (int)s->n_pairs;
	free(s);
	return n;
}

static bool is_linked(const umad_ca_t *ca, unsigned portnum)
{
	const umad_port_t *port = ca_port(ca, portnum);

	return port && port->state > PORT_STATE_DOWN;
}

/* Sets *portnum to the first port whose link is not down. */
static bool prefer_linked(const umad_ca_t *ca, uint32_t *portnum)
{
	for (int i = 0; i <= ca->numports; i++) {
		if (!is_linked(ca, i))
			continue;
		*portnum = i;
		return true;
	}
	return false;
}

/* The only port, if the device has one. */
static unsigned only_port(const umad_ca_t *ca, unsigned portnum)
{
	if (ca->numports == 1)
		return ca->ports[0] ? 0 : 1;
	return portnum;
}

/*
 * Sets the preferred ports by the device that was asked for, or that has the SMI.  named: the
 * program named the device, and gets its port whatever state that is in.
 */
static bool prefer_ports(
	struct umad_ca_pair *pair, const umad_ca_t *ca, unsigned portnum, bool gsi, bool named)
{
	uint32_t *mine = gsi ? &pair->gsi_preferred_port : &pair->smi_preferred_port;
	uint32_t *other = gsi ? &pair->smi_preferred_port : &pair->gsi_preferred_port;

	portnum = only_port(ca, portnum);
	if (!portnum && ca->node_type != NODE_TYPE_SWITCH)
		return prefer_linked(ca, mine) && prefer_linked(ca, other);
	if (!named && !is_linked(ca, portnum))
		return false;
	*mine = portnum;
	if (!strcmp(pair->smi_name, pair->gsi_name)) {
		*other = portnum;
		return true;
	}
	return prefer_linked(ca, other) || named;
}

/* True if the pair is the answer, with its preferred ports. */
static bool fits(struct umad_ca_pair *pair, const char *name, unsigned portnum, bool smi)
{
	bool gsi = name && !strcmp(name, pair->gsi_name), ok;
	umad_ca_t ca;

	if (!pair->gsi_name[0] || (smi && !pair->smi_name[0]))
		return false;
	if (name && !gsi && strcmp(name, pair->smi_name))
		return false;
	gsi |= !pair->smi_name[0];
	if (ca_read(gsi ? pair->gsi_name : pair->smi_name, &ca))
		return false;
	ok = (!portnum || ca_port(&ca, portnum)) &&
	     prefer_ports(pair, &ca, portnum, gsi, name != NULL);
	ca_free(&ca);
	return ok;
}

int umad_get_smi_gsi_pair_by_ca_name(
	const char *devname, uint8_t portnum, struct umad_ca_pair *ca_pair, unsigned enforce_smi)
{
	struct umad_ca_pair *pairs = ca_pair ? calloc(CAS_MAX, sizeof *pairs) : NULL;
	int n, i = 0;

	if (!pairs)
		return -1;
	memset(ca_pair, 0, sizeof *ca_pair);
	n = umad_get_smi_gsi_pairs(pairs, CAS_MAX);
	while (i < n && !fits(&pairs[i], devname, portnum, enforce_smi))
		i++;
	if (i < n)
		*ca_pair = pairs[i];
	free(pairs);
	if (n <= 0 || i < n)
		return n < 0 ? n : 0;
	errno = ENODEV;
	return -ENODEV;
}
