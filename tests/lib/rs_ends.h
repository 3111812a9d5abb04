/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of rsockets for test programs; everything over the public calls. */
#pragma once

#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>

enum { RS_TEST_WAIT_MS = 20000 };

/* 127.0.0.1 with that port, host order. */
struct sockaddr_in rs_addr4(uint16_t port);

/* An rsocket that listens at 127.0.0.1; its port. */
int rs_listener(uint16_t *port);

/* rpoll of one rsocket: its conditions, 0 if none came in ms. */
short rs_poll1(int fd, short events, int ms);

/* Begins to connect, without blocking; O_NONBLOCK stays set. */
int rs_connecting(uint16_t port);

/* Both ends of a connection within this process, blocking. */
struct rs_pair {
	int active, passive;
};
struct rs_pair rs_pair_at(int listener, uint16_t port);
struct rs_pair rs_pair(void);

void rs_nonblock(int fd, bool on);
