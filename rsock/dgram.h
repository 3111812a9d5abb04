/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams. */
#pragma once

#include "rsock/rsock.h"

int dgram_bind(struct rsocket *s, const struct sockaddr *addr, socklen_t len);

int dgram_connect(struct rsocket *s, const struct sockaddr *addr, socklen_t len);

void dgram_free(struct rsocket *s);

void dgram_events(struct rsocket *s);

void dgram_progress(struct rsocket *s);

bool dgram_readable(const struct rsocket *s);

bool dgram_writable(const struct rsocket *s);

/* One datagram from the pieces, to `to`, or the connected peer if that is NULL.  -EAGAIN. */
ssize_t dgram_put(struct rsocket *s, const struct iovec *iov, int n, const struct sockaddr *to,
	socklen_t len);

/* One datagram: its whole length; *from (may be NULL): whose; what does not fit is lost. */
ssize_t dgram_take(struct rsocket *s, const struct iovec *iov, int n, bool peek,
	struct sockaddr_storage *from);

/* Where rconnect() led, 0 or -ENOTCONN. */
int dgram_peer(const struct rsocket *s, struct sockaddr_storage *peer);
