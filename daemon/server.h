/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weftd: one process per user and fabric, one thread, one epoll loop, nothing periodic.  It
 * never waits for a client.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/tables/ended.h"
#include "daemon/tables/leases.h"
#include "daemon/tables/members.h"
#include "daemon/tables/nodes.h"
#include "daemon/tables/timers.h"
#include "hca/exec/recover.h"
#include "rdv/paths.h"
#include "roce/port/lock.h"

struct process;
struct session;
struct connections;
struct peer_total;
struct umads;
struct issm;
struct subnet_service;
struct mad_port;
struct wire_port;
struct qp1;
struct server;

/* Something epoll watches; first member of what it belongs to. */
struct watch {
	void (*ready)(struct server *s, struct watch *w, uint32_t events);
	int fd; /* -1: none */
};

/* Why weftd refused, dropped or could not do something; counted, shown by weft status. */
enum refusal {
	REF_OTHER_USER,
	REF_OTHER_NETNS,
	REF_BAD_MESSAGE,
	REF_BAD_VERSION,
	REF_BAD_OP,
	REF_BAD_FDS,
	REF_NOT_ATTACHED,
	REF_NOT_READING,
	REF_NO_FDS,
	REF_NO_MEMORY,
	REF_BAD_SEGMENT,
	REF_ID_CONFLICT,
	REF_LEASE_CONFLICT,
	REF_UNKNOWN_PEER,
	REF_CHANNEL_FULL,
	REF_GIDS_FULL,
	REF_MEMBERS_FULL,
	REF_COUNT
};

enum { ATTACH_NUMBERS = 1 << 14 };

struct server {
	struct rdv_paths paths;
	int life_fd; /* NAME.epoch, locked while we live */
	uint32_t epoch;
	bool stay, stop;
	bool took_over;      /* the weftd before was killed: its processes publish again */
	uint64_t idle_ns;    /* leave after that long with nothing attached */
	uint64_t idle_since; /* CLOCK_MONOTONIC ns */
	uint64_t started;
	uint64_t netns_dev, netns_ino;

	int epfd;
	int spare_fd; /* given up for a moment to refuse a connection when fds run out */
	int base_fds; /* open before any client came */
	struct watch listener, signals, timer, addrs;
	struct watch shown; /* rdv/fabrics.h */

	struct recover_env env; /* hub segment and id in it */
	int hub_fd;
	struct nodes nodes;
	struct node *node; /* number 0: the device of this host */
	bool had_uplink;   /* a link but loopback was up since we run */

	struct session *sessions;  /* list: all connections */
	struct process *processes; /* list */
	uint32_t n_processes;
	struct process *by_number[ATTACH_NUMBERS]; /* low bits of the attach id; chained */
	uint32_t next_number;
	uint32_t n_channels;
	struct leases leases;
	struct members members;
	struct timers timers;
	struct connections *connections; /* daemon/connections.h */
	struct peer_total *ended_peers;  /* daemon/peer_stats.c: of processes that have gone */
	struct ended ended;              /* those that have gone last */
	struct mad_port *mad_port;       /* weft0's; all ports have its layer */
	/* After MADs were sent, or may be: delivers them, within bounds, and sees to the clock. */
	void (*deliver)(struct server *s);
	uint32_t n_files;              /* umad and issm files that are open: weftd stays for them */
	struct umads *umads;           /* daemon/umad_file.h */
	struct issm *issms;            /* daemon/issm.h; in the order of opening */
	struct subnet_service *subnet; /* daemon/subnet_service.h; NULL: no topology */
	char faults[SEG_FAULT_TEXT];   /* rules for packets of all processes */
	bool faults_told;              /* somebody has set them, or cleared them */
	struct wire_port *wire;        /* daemon/wire.h */
	struct qp1 *qp1;               /* daemon/qp1.h */
	struct port_place place;       /* whose addresses we have */
	uint64_t refusals[REF_COUNT];
};

/* Serves until told to stop, or idle for long enough.  0 or a negative errno. */
int server_run(struct server *s);

/* Puts w under the eyes of epoll for reading.  -errno. */
int server_watch(struct server *s, struct watch *w);

/*
 * Stops watching w->fd and closes it.  To close alone is not enough: a process that was given a
 * duplicate keeps the fd's registration alive, and its events would name what was freed.
 */
void server_unwatch(struct server *s, struct watch *w);

/* Whether nobody has the other end of a socket any more, whatever still lies in it. */
bool server_hung_up(const struct watch *w);

/* Arms the timerfd for the earliest timer. */
void server_arm(struct server *s);

/* Counts a refusal and logs it at level info, in one line. */
void server_refuse(struct server *s, enum refusal why);

/* The same, and says in that line what was refused. */
void server_refuse_what(struct server *s, enum refusal why, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

const char *refusal_name(enum refusal why);

/* Fds open now, our own standing ones not counted. */
int server_count_fds(const struct server *s);
