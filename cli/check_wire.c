// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check_wire.h"

#include <errno.h>
#include <jansson.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/check_weft.h"
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

static int bind_there(const struct port_place *place, bool ipv6)
{
	struct roce_socket_wish wish = {.ipv6 = ipv6, .any = place->any, .port = ROCE_PORT};
	int fd = new_socket(ipv6, false), rc;

	memcpy(wish.addr, place->addr, sizeof wish.addr);
	if (fd < 0)
		return ipv6 && place->any ? 0 : fd; /* a machine without IPv6 is none the worse */
	rc = roce_socket_bind(fd, &wish);
	close(fd);
	return rc;
}

static int try_port(const struct port_place *place)
{
	int rc;

	if (!place->any)
		return bind_there(place, place->ipv6);
	rc = bind_there(place, false);
	return rc ? rc : bind_there(place, true);
}

/* The place of this fabric: one address, if its weftd was given one.  True: it has it. */
static bool ask_fabric(struct port_place *place)
{
	json_t *root = NULL, *wire;
	const char *state, *address;
	char *text = NULL;
	bool ours;

	if (check_can_ask_weftd() && !rdv_status_json(NULL, &text))
		root = json_loads(text, 0, NULL);
	free(text);
	wire = json_object_get(root, "wire");
	state = json_string_value(json_object_get(wire, "state"));
	address = json_string_value(json_object_get(wire, "address"));
	if (!address || !port_place_parse(place, address))
		*place = (struct port_place){.any = true};
	ours = state && !strcmp(state, "open");
	json_decref(root);
	return ours;
}

void check_udp_port(struct check *c)
{
	struct port_holder holder;
	struct port_place place;
	bool ours = ask_fabric(&place);
	char at[PORT_PLACE_TEXT], of[PORT_PLACE_TEXT + 4] = "";
	int rc = ours ? 0 : try_port(&place);

	port_place_text(&place, at);
	if (!place.any)
		snprintf(of, sizeof of, " of %s", at);
	if (ours) {
		check_set(c, CHECK_OK, NULL, "%d%s is this fabric's", ROCE_PORT, of);
	} else if (!rc) {
		check_set(c, CHECK_OK, NULL, "%d%s is free", ROCE_PORT, of);
	} else if (rc == -EADDRNOTAVAIL) {
		check_set(c, CHECK_WARN,
			"give it to this machine, or the fabric another (weft down, weft up "
			"--address)",
			"%d%s: this machine does not have that address", ROCE_PORT, of);
	} else {
		port_holder_find(&place, &holder);
		check_set(c, CHECK_WARN,
			"to reach other machines end that, or give each user an address (weft up "
			"--address)",
			"%d%s: %s: %s", ROCE_PORT, of, strerror(-rc), holder.text);
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
