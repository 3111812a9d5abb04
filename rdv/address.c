// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/address.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "rdv/admin.h"
#include "rdv/paths.h"

static int put_address(const struct rdv_paths *p, const char *address)
{
	int fd = rdv_open_file(p, "address");
	size_t len = strlen(address);
	int ret = fd < 0 ? fd : 0;

	if (!ret && (ftruncate(fd, 0) || write(fd, address, len) != (ssize_t)len))
		ret = errno ? -errno : -EIO;
	if (fd >= 0)
		close(fd);
	if (ret)
		log_line(LOG_LVL_ERROR, "cannot write %s/%s.address: %s", p->dir, p->name,
			strerror(-ret));
	return ret;
}

int rdv_start_at(const char *fabric, const char *address, int32_t *pid)
{
	struct rdv_paths p;
	int ret = rdv_ping(fabric, pid);

	if (ret != -ENOTCONN)
		return ret ? ret : -EEXIST;
	ret = rdv_paths_open(&p, fabric);
	if (ret)
		return ret;
	ret = put_address(&p, address);
	rdv_paths_close(&p);
	return ret ? ret : rdv_start(fabric, true, pid);
}

void rdv_forget_address(const char *fabric)
{
	struct rdv_paths p;

	if (rdv_paths_open(&p, fabric))
		return;
	unlinkat(p.dir_fd, rdv_file_name(&p, "address").s, 0);
	rdv_paths_close(&p);
}
