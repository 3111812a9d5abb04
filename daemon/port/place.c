// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/port/place.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

void port_place_get(const struct rdv_paths *p, struct port_place *out)
{
	int fd = rdv_open_to_read(p, "address");
	char text[PORT_PLACE_TEXT] = "";
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if ((fd >= 0 || fd == -ENOENT) && port_place_parse(out, text))
		return;
	log_line(LOG_LVL_WARN, "%s/%s.address: no IP address; all of this machine count", p->dir,
		p->name);
	port_place_parse(out, "*");
}

void port_place_forget(const struct rdv_paths *p)
{
	unlinkat(p->dir_fd, rdv_file_name(p, "address").s, 0);
}
