// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check_wire.h"

#include <jansson.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/check.h"
#include "rdv/admin.h"
#include "roce/port/lock.h"
#include "roce/port/socket.h"
#include "roce/port/steer.h"
#include "wire/roce.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* A socket as weftd's, not bound; -errno. */
static int new_socket(bool ipv6, bool group)
{
	const struct roce_socket_wish wish = {.ipv6 = ipv6, .any = true, .group = group};

	return roce_socket_open(&wish);
}

static int try_port(bool ipv6)
{
	const struct roce_socket_wish wish = {.ipv6 = ipv6, .any = true, .port = ROCE_PORT};
	int fd = new_socket(ipv6, false), rc;

	if (fd < 0)
		return ipv6 ? 0 : fd; /* a machine without IPv6 is none the worse */
	rc = roce_socket_bind(fd, &wish);
	close(fd);
	return rc;
}

static bool is_ours(void)
{
	json_t *root = NULL, *state;
	char *text = NULL;
	bool ours;

	if (!rdv_status_json(NULL, &text))
		root = json_loads(text, 0, NULL);
	free(text);
	state = json_object_get(json_object_get(root, "wire"), "state");
	ours = json_is_string(state) && !strcmp(json_string_value(state), "open");
	json_decref(root);
	return ours;
}

void check_udp_port(struct check *c)
{
	const struct port_place any = {.any = true};
	struct port_holder holder;
	int rc = try_port(false);

	if (!rc)
		rc = try_port(true);
	if (!rc) {
		check_set(c, CHECK_OK, NULL, "%d is free", ROCE_PORT);
	} else if (is_ours()) {
		check_set(c, CHECK_OK, NULL, "%d is this fabric's", ROCE_PORT);
	} else {
		port_holder_find(&any, &holder);
		check_set(c, CHECK_WARN,
			"to reach other machines end that, or give each user an address (weft up "
			"--address)",
			"%d: %s: %s", ROCE_PORT, strerror(-rc), holder.text);
	}
}

void check_udp_room(struct check *c)
{
	int fd = new_socket(false, false), room = 0;
	socklen_t len = sizeof room;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, &len))
		room = 0;
	if (fd >= 0)
		close(fd);
	room /= 2; /* the kernel doubles what it was asked for */
	if (room >= ROCE_SOCKET_ROOM)
		check_set(c, CHECK_OK, NULL, "%d KiB", room >> 10);
	else
		check_set(c, CHECK_WARN,
			"sysctl net.core.rmem_max=4194304 loses fewer packets of other machines",
			"%d KiB while a program does not look", room >> 10);
}

void check_udp_batches(struct check *c)
{
	int fd = new_socket(false, false), on = 1, size = 1024;
	bool gso = fd >= 0 && !setsockopt(fd, SOL_UDP, UDP_SEGMENT, &size, sizeof size);
	bool gro = fd >= 0 && !setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on);

	if (fd >= 0)
		close(fd);
	if (gso && gro)
		check_set(c, CHECK_OK, NULL, "many packets at once, out (GSO) and in (GRO)");
	else
		check_set(c, CHECK_WARN, "Linux 5.0 or newer is faster between machines",
			"packets go one by one:%s%s", gso ? "" : " no GSO", gro ? "" : " no GRO");
}

void check_udp_steering(struct check *c)
{
	static struct sock_filter code[STEER_CODE_MAX];
	const struct steer_range range = {.first = 256, .last = 511, .index = 1};
	int fd = new_socket(false, true);
	int len = steer_program(&range, 1, code, STEER_CODE_MAX);
	int rc = fd < 0 ? fd : steer_attach(fd, code, len);

	if (fd >= 0)
		close(fd);
	if (!rc)
		check_set(c, CHECK_OK, NULL, "packets come to their process");
	else
		check_set(c, CHECK_WARN,
			"for other machines allow programs for groups of sockets (seccomp, gVisor)",
			"packets cannot be steered to processes: %s", strerror(-rc));
}
