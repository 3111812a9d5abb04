// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/port/place.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

void wire_place_get(const struct rdv_paths *p, struct wire_place *out)
{
	int fd =
		openat(p->dir_fd, rdv_file_name(p, "address").s, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[WIRE_PLACE_TEXT] = "";
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (wire_place_parse(out, text))
		return;
	log_line(LOG_LVL_WARN, "%s/%s.address: no IP address; all of this machine count", p->dir,
		p->name);
	wire_place_parse(out, "*");
}
