// SPDX-License-Identifier: BSD-3-Clause
#include "umad/port.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "umad/attr.h"
#include "umad/choose.h"
#include "umad/root.h"

enum { CAP_IS_SM_DISABLED = 1 << 10, UMAD_NUMBERS = 192 };

static const struct {
	const char *name;
	size_t off;
} numbers[] = {
	{SYS_PORT_LMC, offsetof(umad_port_t, lmc)},
	{SYS_PORT_SMLID, offsetof(umad_port_t, sm_lid)},
	{SYS_PORT_SMSL, offsetof(umad_port_t, sm_sl)},
	{SYS_PORT_LID, offsetof(umad_port_t, base_lid)},
	{SYS_PORT_STATE, offsetof(umad_port_t, state)},
	{SYS_PORT_PHY_STATE, offsetof(umad_port_t, phys_state)},
	{SYS_PORT_RATE, offsetof(umad_port_t, rate)},
	{SYS_PORT_CAPMASK, offsetof(umad_port_t, capmask)},
};

static int read_numbers(const char *dir, umad_port_t *port)
{
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		unsigned value;
		int rc = attr_number(dir, numbers[i].name, &value);

		if (rc)
			return rc;
		memcpy((char *)port + numbers[i].off, &value, sizeof value);
	}
	port->capmask = htobe32(port->capmask);
	return 0;
}

static int read_identity(const char *dir, umad_port_t *port)
{
	union umad_gid gid;
	int rc = attr_gid(dir, SYS_PORT_GID, &gid);

	if (rc)
		return rc;
	port->gid_prefix = gid.global.subnet_prefix;
	port->port_guid = gid.global.interface_id;
	if (attr_text(dir, SYS_PORT_LINK_LAYER, port->link_layer, sizeof port->link_layer))
		strcpy(port->link_layer, "IB"); /* kernels before 2.6.37 had no other */
	return 0;
}

static bool is_number(const char *name)
{
	return name[0] && !name[strspn(name, "0123456789")];
}

/* How many P_Keys the table of a port has, or -errno. */
static int count_pkeys(const char *dir)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *pkeys;
	int n = 0;

	if (snprintf(path, sizeof path, "%s/pkeys", dir) >= PATH_MAX)
		return -ENAMETOOLONG;
	pkeys = opendir(path);
	if (!pkeys)
		return -errno;
	while ((entry = readdir(pkeys)))
		n += is_number(entry->d_name);
	closedir(pkeys);
	return n;
}

static int read_pkeys(const char *dir, umad_port_t *port)
{
	int n = count_pkeys(dir);
	char name[32];
	unsigned pkey;

	if (n <= 0) {
		log_line(LOG_LVL_WARN, "%s has no P_Keys", dir);
		return -EIO;
	}
	port->pkeys = calloc(n, sizeof *port->pkeys);
	if (!port->pkeys)
		return -ENOMEM;
	port->pkeys_size = n;
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof name, "pkeys/%d", i);
		if (attr_number(dir, name, &pkey)) {
			port_free(port);
			return -EIO;
		}
		port->pkeys[i] = (uint16_t)pkey;
	}
	return 0;
}

int port_read(const char *ca_name, int portnum, umad_port_t *port)
{
	char dir[PATH_MAX];

	snprintf(port->ca_name, sizeof port->ca_name, "%s", ca_name);
	port->portnum = portnum;
	port->pkeys = NULL;
	port->pkeys_size = 0;
	if (root_path(dir, "infiniband/%s/ports/%d", ca_name, portnum) || read_numbers(dir, port) ||
		read_identity(dir, port) || read_pkeys(dir, port))
		return -EIO;
	return 0;
}

void port_free(umad_port_t *port)
{
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
}

bool port_is_ib(const umad_port_t *port)
{
	return !strcmp(port->link_layer, "InfiniBand") || !strcmp(port->link_layer, "IB");
}

bool port_has_smi(const umad_port_t *port)
{
	return !(be32toh(port->capmask) & CAP_IS_SM_DISABLED);
}

static bool is_file_of(const char *mad_dir, int number, const char *ca_name, unsigned portnum)
{
	char dir[PATH_MAX], device[UMAD_CA_NAME_LEN];
	unsigned port;

	return snprintf(dir, sizeof dir, "%s/umad%d", mad_dir, number) < PATH_MAX &&
	       !attr_text(dir, SYS_IB_MAD_DEV, device, sizeof device) &&
	       !attr_number(dir, SYS_IB_MAD_PORT, &port) && !strcmp(device, ca_name) &&
	       port == portnum;
}

int port_umad_number(const char *ca_name, int portnum)
{
	char dir[PATH_MAX];

	if (root_path(dir, "infiniband_mad"))
		return -ENODEV;
	for (int number = 0; number < UMAD_NUMBERS; number++)
		if (is_file_of(dir, number, ca_name, portnum))
			return number;
	return -ENODEV;
}

int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	struct choice chosen;

	if (choose_port(ca_name, portnum, false, &chosen))
		return -ENODEV;
	return port_read(chosen.ca_name, chosen.portnum, port);
}

int umad_release_port(umad_port_t *port)
{
	if (!port)
		return -ENODEV;
	port_free(port);
	return 0;
}
