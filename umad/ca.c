// SPDX-License-Identifier: BSD-3-Clause
#include "umad/ca.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "umad/attr.h"
#include "umad/choose.h"
#include "umad/port.h"
#include "umad/root.h"

const char ca_nobody[] = "mthca0"; /* programs may know it: it has always been this one */

static void optional_text(const char *dir, const char *name, char *out, size_t size)
{
	if (attr_text(dir, name, out, size))
		out[0] = '\0';
}

static int read_identity(const char *dir, umad_ca_t *ca)
{
	int rc = attr_number(dir, SYS_NODE_TYPE, &ca->node_type);

	if (rc)
		return rc;
	optional_text(dir, SYS_CA_FW_VERS, ca->fw_ver, sizeof ca->fw_ver);
	optional_text(dir, SYS_CA_HW_VERS, ca->hw_ver, sizeof ca->hw_ver);
	optional_text(dir, SYS_CA_TYPE, ca->ca_type, sizeof ca->ca_type);
	rc = attr_guid(dir, SYS_CA_NODE_GUID, &ca->node_guid);
	return rc ? rc : attr_guid(dir, SYS_CA_SYS_GUID, &ca->system_guid);
}

/* Port 0, of a switch, to port 9. */
static int read_port(umad_ca_t *ca, const char *name)
{
	int portnum = name[0] - '0';
	umad_port_t *port;
	int rc;

	if (portnum < 0 || portnum >= UMAD_CA_MAX_PORTS || name[1])
		return -EIO;
	port = calloc(1, sizeof *port);
	if (!port)
		return -ENOMEM;
	rc = port_read(ca->ca_name, portnum, port);
	if (rc) {
		free(port);
		return rc;
	}
	ca->ports[portnum] = port;
	if (ca->numports < portnum)
		ca->numports = portnum;
	return 0;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static int read_ports(const char *dir, umad_ca_t *ca)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *ports;
	int rc = 0;

	if (snprintf(path, sizeof path, "%s/" SYS_CA_PORTS_DIR, dir) >= PATH_MAX)
		return -ENAMETOOLONG;
	ports = opendir(path);
	if (!ports)
		return -ENOENT;
	while (!rc && (entry = readdir(ports)))
		if (!is_dots(entry->d_name))
			rc = read_port(ca, entry->d_name);
	closedir(ports);
	return rc;
}

int ca_read(const char *name, umad_ca_t *ca)
{
	char dir[PATH_MAX];
	int rc;

	ca->numports = 0;
	memset(ca->ports, 0, sizeof ca->ports);
	snprintf(ca->ca_name, sizeof ca->ca_name, "%s", name);
	rc = root_path(dir, "infiniband/%s", ca->ca_name);
	if (!rc)
		rc = read_identity(dir, ca);
	if (!rc)
		rc = read_ports(dir, ca);
	if (rc)
		ca_free(ca);
	return rc;
}

void ca_free(umad_ca_t *ca)
{
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (!ca->ports[i])
			continue;
		port_free(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
}

umad_port_t *ca_port(const umad_ca_t *ca, unsigned portnum)
{
	return portnum < UMAD_CA_MAX_PORTS ? ca->ports[portnum] : NULL;
}

int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	struct choice chosen;

	if (choose_ca(ca_name, &chosen))
		return -ENODEV;
	return ca_read(chosen.ca_name, ca);
}

int umad_release_ca(umad_ca_t *ca)
{
	if (!ca)
		return -ENODEV;
	ca_free(ca);
	return 0;
}

int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	struct choice chosen;
	umad_ca_t ca;
	int n = 0;

	if (choose_ca(ca_name, &chosen))
		return -ENODEV;
	if (ca_read(chosen.ca_name, &ca))
		return -1;
	if (portguids)
		n = ca.numports + 1 <= max ? ca.numports + 1 : -ENOMEM;
	for (int i = 0; i < n; i++)
		portguids[i] = ca.ports[i] ? ca.ports[i]->port_guid : 0;
	ca_free(&ca);
	return n;
}

bool ca_is_node(const char *name)
{
	char dir[PATH_MAX];
	unsigned type;

	return !is_dots(name) && !root_path(dir, "infiniband/%s", name) &&
	       !attr_number(dir, SYS_NODE_TYPE, &type) && type >= NODE_TYPE_CA &&
	       type <= NODE_TYPE_ROUTER;
}

static int scan_devices(struct dirent ***names)
{
	char dir[PATH_MAX];

	return root_path(dir, "infiniband") ? -1 : scandir(dir, names, NULL, alphasort);
}

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	struct dirent **names;
	int found = scan_devices(&names), n = 0;

	if (found < 0) {
		if (max > 0)
			strcpy(cas[0], ca_nobody);
		return 1;
	}
	for (int i = 0; i < found; i++) {
		const char *name = names[i]->d_name;

		if (n < max && strlen(name) < UMAD_CA_NAME_LEN && ca_is_node(name))
			strcpy(cas[n++], name);
		free(names[i]);
	}
	free(names);
	return n;
}
