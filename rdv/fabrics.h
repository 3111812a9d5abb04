/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabrics of this network namespace, whoever's they are.  Each weftd shows itself by an
 * abstract name that goes with it:
 *
 *   weft-fabric/UID/PID/FABRIC/GUID     a listening socket, whose peer is closed at once
 *
 * Anybody can take such a name, so of the name only what the fabric is called is believed; whose it
 * is, the kernel says of the socket.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rdv/paths.h"

struct rdv_fabric {
	char name[FABRIC_NAME_MAX + 1];
	uid_t uid;
	pid_t pid;     /* of its weftd; 0: of another pid namespace */
	uint64_t guid; /* of its first node, as it says */
};

enum { RDV_FABRICS_MAX = 32 };

/*
 * For weftd: shows that it serves that fabric.  A socket, to be given to unix_name_greet() when it
 * is readable; -errno.
 */
int rdv_fabric_show(const char *fabric, uint64_t guid);

/*
 * Those that live, without the one of that GUID (0: all), at most RDV_FABRICS_MAX; how many.  Waits
 * for nobody.
 */
size_t rdv_fabrics_find(struct rdv_fabric out[RDV_FABRICS_MAX], uint64_t but);

/*
 * For people: `fabric "b" of user 1000 (weftd 123)`, and so on, as many as fit; says if there are
 * more.  "" if n is 0.
 */
void rdv_fabrics_text(char *text, size_t size, const struct rdv_fabric *all, size_t n);
