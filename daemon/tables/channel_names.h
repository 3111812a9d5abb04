/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of event channels' sockets: NAME.ch/ATTACH-ID in the runtime directory, both hexadecimal,
 * so that no other user reaches them.  weftd alone makes and removes them; it works in that
 * directory, and all names are relative to it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "rdv/paths.h"

/* Goes to the runtime directory.  0 or a negative errno. */
int channel_names_start(const struct rdv_paths *p);

/*
 * Removes the names that processes left behind which died without a weftd that knew them.  How many
 * names there are besides; or a negative errno.
 */
int channel_names_sweep(const struct rdv_paths *p);

/* The same, and removes the directory if none is left. */
void channel_names_end(const struct rdv_paths *p);

/*
 * The name of socket fd, given to it now if it has none: the second of the process owner's channel
 * id.  -EINVAL: it is no datagram socket of that kind; -ENOENT: its name was removed; what bind(2)
 * and mkdir(2) answer.
 */
int channel_name_give(
	const struct rdv_paths *p, int fd, uint32_t owner, uint32_t id, struct sockaddr_un *addr);

void channel_name_remove(const struct sockaddr_un *addr);
