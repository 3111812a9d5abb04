/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of umad files: MADs between files of weft0, whose port reaches itself. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "mad/umad_abi.h"
#include "tests/lib/t.h"
#include "umad/file.h"

enum {
	MAD_BYTES = 256,
	CLASS = 0x0a, /* one that nobody else uses, without RMPP */
	SA = 0x03,    /* one with RMPP */
	METHOD = 5,   /* of a request that is no Get or Set */
	RESPONSE = 0x80,
	LONG_MS = 10000,
};

/* What is written and read. */
struct packet {
	struct umad_hdr hdr;
	uint8_t mad[MAD_BYTES];
};

/* Opens weft0's file, O_NONBLOCK or 0; the second with P_Key indices. */
int open_plain(int flags);
int open_file(int flags);

/* An agent for all requests of that class with METHOD; its id. */
uint32_t add_agent(int fd, uint8_t mgmt_class, uint8_t rmpp_version);

/* An agent that only sends. */
uint32_t add_sender(int fd, uint8_t rmpp_version);

/* To weft0 itself: a request of that class, with the low half of a transaction id. */
struct packet request(uint32_t agent, uint8_t mgmt_class, uint32_t tid);

/* The answer to what came. */
struct packet answer(uint32_t agent, const struct packet *to);

uint32_t low_tid(const struct packet *p);
/* The half that is not the program's. */
uint32_t high_tid(const struct packet *p);

/* Writes, and reads, a whole packet; fails the test otherwise. */
void put(int fd, const struct packet *p);
void get(int fd, struct packet *p);

/* Waits for what is to be read; fails the test after LONG_MS. */
void await(int fd);

/* Sees that poll(2) finds nothing to be read, now or in a moment. */
void quiet(int fd);

/* A number of weft status: {"umad", name}, or with drop {"umad", "drops", name}. */
int64_t umad_status(const char *name);
int64_t umad_drops(const char *name);

/* Waits until that number is n. */
void await_status(const char *name, int64_t n);

/* Waits until so many issm files are open, those that wait included. */
void await_issm(int64_t n);

/* Its process. */
pid_t find_weftd(void);

/* Ends weftd by SIGKILL and waits until it is gone. */
void kill_weftd(void);

/* The cases of a file of this folder; the last one has no name. */
struct test_case {
	const char *name;
	void (*run)(void);
};

extern const struct test_case rule_cases[], traffic_cases[], hand_on_cases[], loss_cases[],
	message_cases[], issm_cases[], memory_cases[], pace_cases[], readiness_cases[];
