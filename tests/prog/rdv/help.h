/* SPDX-License-Identifier: BSD-3-Clause */
/* For the cases of this directory: a weftd of their own, and kids that obey. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

enum { SKIP = 77 };

/* Ends the case if the condition does not hold. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			check_failed(__FILE__, __LINE__, #cond);                                   \
	} while (0)

/* Ends the case if a != b, and says what they are. */
#define CHECK_EQ(a, b) check_eq(__FILE__, __LINE__, #a, a, b)

void check_failed(const char *file, int line, const char *cond) __attribute__((noreturn));
void check_eq(const char *file, int line, const char *what, long a, long b);

/* The runtime directory of this case, and the log file that all its processes write. */
extern char run_dir[64];
extern char log_path[96];

/* True if the log has that text. */
bool logged(const char *text);

/* A process that carries out one order at a time. */
struct kid {
	pid_t pid;
	int to, from;
};

enum order {
	DO_ATTACH,    /* 0 or the error */
	ASK_ID,       /* attach id */
	ASK_HUB,      /* hub id */
	DO_LEASE,     /* first QP number, or the error */
	DO_FIND,      /* arg: QP number; attach id of its owner, or the error */
	DO_FIND_DEAD, /* arg: QP number; 1 if the segment found before is marked dead */
	DO_CHANNEL,   /* arg: id; adds an eventfd */
	DO_READ, /* arg: id; takes one event, -EAGAIN if there is none after arg2 ms; 0: 20 s */
	DO_FIRE, /* arg: attach id, arg2: channel */
	DO_CLOSE_FDS,   /* closes all fds but the orders' */
	DO_CLOSE_CLAIM, /* arg: QP number; closes the socket of its claim; how many there were */
	DO_CHECK,       /* rdv_check() */
	DO_REVIVE,      /* 0 if the async fd is good then, or the error */
	DO_FORK,        /* makes a child that obeys in its place; the pid of the child */
	DO_EXEC,        /* becomes sleep(1), no reply */
	DO_LIMIT_FSIZE, /* file size limit 0, soft and hard */
	DO_LIMIT_FDS,   /* arg: soft limit of fds */
	DO_SETUID,      /* arg: uid */
	DO_NEWNET,      /* enters a network namespace of its own; 0 or the error */
	ASK_EPOCH,      /* rdv_epoch() */
	DO_JOIN,        /* index among the sockets of UDP port 4791, or the error */
	DO_PACKET,      /* arg: QP number, arg2: ms; which way a packet came (wire_kid.h) */
	DO_COUNT,       /* arg: QP number, arg2: ms between two; how many packets came */
	DO_HAND,        /* arg: QP number; hands weftd a packet */
	DO_EXIT,        /* no reply */
};

struct kid kid_start(void);
long kid_do(struct kid *k, enum order o, long arg, long arg2);
/* Sends the order without awaiting its reply; that comes by kid_reply(). */
void kid_send(struct kid *k, enum order o, long arg, long arg2);
long kid_reply(struct kid *k);
/* Ends it by a signal, or by DO_EXIT if 0, and reaps it. */
void kid_end(struct kid *k, int sig);

/* A number in weftd's status, by "counts.processes" or "refusals.bad_op"; -1: no weftd. */
long status_of(const char *fabric, const char *path);
/* Waits up to 20 s until that number is want; false if it does not come to that. */
bool status_becomes(const char *fabric, const char *path, long want);
/* Has weftd's status that GID, written as an IPv6 address? */
bool has_gid(const char *fabric, const char *gid);
/* Waits until nothing is left of any client. */
bool all_zero(const char *fabric);
/* The pid of the weftd of a fabric, 0 if there is none. */
pid_t weftd_pid(const char *fabric);
/* Kills that weftd, and waits until its sockets are gone: the next call of a kid starts another. */
void weftd_kill(const char *fabric);

double seconds(void);

/* The cases return 0, 1 or SKIP. */
struct test_case {
	const char *name;
	int (*run)(void);
};

extern const struct test_case life_cases[], start_cases[], hostile_cases[], user_cases[],
	wire_cases[], fabric_cases[];
