/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has UDP port 4791 of this network namespace.  The kernel keeps other users out, but would let
 * a second fabric of this user slip into the first one's SO_REUSEPORT group; so an abstract socket
 * name, one for each address that is bound, is the lock.  It lives as long as a descriptor of it.
 *
 *   weft-roce-4791/ADDRESS         held by weftd and its processes (roce/port/keeper.h): the lock
 *   weft-roce-4791/ADDRESS/weftd   held by that weftd, which answers who asks whose the port is
 *
 * The lock answers nobody, so nothing piles up at it when only processes hold it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Which addresses of this machine. */
struct port_place {
	bool any;         /* all; else addr alone */
	bool ipv6;        /* addr is one */
	uint8_t addr[16]; /* IPv4: the last 4 bytes */
};

enum { PORT_PLACE_TEXT = 48 };

/* "*", or the address. */
void port_place_text(const struct port_place *p, char text[PORT_PLACE_TEXT]);

bool port_place_same(const struct port_place *a, const struct port_place *b);

/* false: it is none.  An empty text and "*" are any. */
bool port_place_parse(struct port_place *p, const char *text);

/* Takes the lock: an fd, CLOEXEC.  -EADDRINUSE: it is taken. */
int port_lock_take(const struct port_place *p);

/* Whether fd is a lock, as far as that can be seen: it may be a stranger's socket. */
bool port_lock_is(int fd);

/*
 * For who has the lock: shows that it lives, by a listening socket, non-blocking, CLOEXEC, to be
 * given to unix_name_greet() when it is readable.  -EADDRINUSE: somebody has that name.
 */
int port_lock_show(const struct port_place *p);

enum port_holder_kind {
	PORT_HOLDER_FABRIC,  /* a weftd that runs */
	PORT_HOLDER_ORPHANS, /* processes of a weftd that has ended */
	PORT_HOLDER_OTHER,   /* a program or the kernel */
};

struct port_holder {
	enum port_holder_kind kind;
	char text[128]; /* for people: "weftd (pid 12) of user 1000" */
};

/* Who holds the port, after a lock or a bind answered -EADDRINUSE.  Does not block. */
void port_holder_find(const struct port_place *p, struct port_holder *out);
