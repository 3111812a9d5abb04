// SPDX-License-Identifier: BSD-3-Clause
#include "umad/open.h"

#include <errno.h>
#include <limits.h>

#include "umad/attr.h"
#include "umad/file.h"
#include "umad/issm.h"
#include "umad/root.h"

int open_numbered(bool issm, unsigned number, int flags)
{
	char dir[PATH_MAX], device[UMAD_CA_NAME_LEN];
	unsigned port;

	if (root_path(dir, "infiniband_mad/%s%u", issm ? "issm" : "umad", number) ||
		attr_text(dir, SYS_IB_MAD_DEV, device, sizeof device) ||
		attr_number(dir, SYS_IB_MAD_PORT, &port))
		return -ENXIO;
	return issm ? umad_issm_open(device, (int)port, flags)
		    : umad_file_open(device, (int)port, flags);
}
