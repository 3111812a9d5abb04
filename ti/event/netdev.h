/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Link devices and routes, as the kernel tells of them (rtnetlink); their events.  The ti-cm thread
 * reads the messages, the system thread understands them and tells.
 */
#pragma once

#include "base/own_fd.h"
#include "ti/event/events.h"

/* A socket for the kernel's messages, which stays ours, with all devices known; negative errno. */
int netdev_open(struct own_fd *out);

/* Reads what came, and leaves it to the system thread. */
void netdev_read(int fd);

/*
 * Tells who of TI_EVENT_NETDEV_ONLINE for each device that is up and running.  On the system
 * thread.
 */
void netdev_each_online(const struct listener *who);

/* After a fork: no device is known, and the parent's socket is closed. */
void netdev_forked(void);
