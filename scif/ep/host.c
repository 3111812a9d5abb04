// SPDX-License-Identifier: BSD-3-Clause
#include "scif/ep/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "rdv/paths.h"
#include "scif/ep/check.h"

struct row {
	uint16_t node;
	char address[INET6_ADDRSTRLEN];
};

static const char *table(void)
{
	return secure_getenv("WEFT_SCIF_NODES");
}

void host_text(const struct sockaddr_storage *addr, char *text, socklen_t len)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET6)
		inet_ntop(AF_INET6, &sin6->sin6_addr, text, len);
	else
		inet_ntop(AF_INET, &sin->sin_addr, text, len);
}

bool host_read(const char *text, uint16_t port, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, text, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		return true;
	}
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(port);
	return inet_pton(AF_INET6, text, &sin6->sin6_addr) == 1;
}

/* Copies n bytes of text; false: there is no room, or there are none. */
static bool cut(char *to, size_t room, const char *from, size_t n)
{
	if (!n || n >= room)
		return false;
	memcpy(to, from, n);
	to[n] = '\0';
	return true;
}

static bool read_row(const char *text, size_t len, struct row *row)
{
	const char *mid = memchr(text, '=', len);
	struct sockaddr_storage unused;
	char number[8];
	int node;

	if (!mid || !cut(number, sizeof(number), text, mid - text) ||
		!cut(row->address, sizeof(row->address), mid + 1, text + len - mid - 1))
		return false;
	node = rdv_node_number(number);
	row->node = node;
	return node >= 0 && host_read(row->address, 0, &unused);
}

/* The row at *at, which moves behind it: 1; 0: there is no more; -EINVAL: it cannot be read. */
static int next_row(const char **at, struct row *row)
{
	size_t len;

	if (!*at || !**at)
		return 0;
	len = strcspn(*at, ",");
	if (!read_row(*at, len, row))
		return -EINVAL;
	*at += len;
	*at += **at == ',';
	return 1;
}

int host_check(void)
{
	const char *at = table();
	struct row row;
	int ret;

	while ((ret = next_row(&at, &row)) > 0)
		;
	if (!ret)
		return 0;
	check_why("WEFT_SCIF_NODES is '%s', not rows NODE=ADDRESS with commas between them", at);
	log_line(LOG_LVL_ERROR,
		"WEFT_SCIF_NODES has '%s', not NODE=ADDRESS,...; correct or unset it", at);
	return ret;
}

bool host_of(uint16_t node, uint16_t port, struct sockaddr_storage *addr)
{
	const char *at = table();
	struct row row;

	while (next_row(&at, &row) > 0)
		if (row.node == node)
			return host_read(row.address, port, addr);
	return false;
}

int host_nodes(uint16_t *nodes, int room)
{
	const char *at = table();
	struct row row;
	int n = 0;

	while (n < room && next_row(&at, &row) > 0)
		nodes[n++] = row.node;
	return n;
}
