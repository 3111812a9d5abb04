// SPDX-License-Identifier: BSD-3-Clause
/*
 * NodeInfo by a directed route of no hops, window requests under way, through libibumad: what a MAD
 * to a port and its answer take.  Any libibumad, and so any subnet behind it, will do.
 *
 * usage: umad_lat WINDOW COUNT [IDLE]
 *
 * IDLE other files of the port are open meanwhile, each with an agent of its own.  Prints the
 * average and the median in us of one MAD (all of a window take as long as one, divided by the
 * window).  An answer that never comes ends it, whatever waits for it.
 */
#include <endian.h>
#include <infiniband/umad.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/median.h"
#include "bench/pin.h"

enum {
	MAD = 256,
	CLASS = 0x81, /* directed route */
	GET = 1,
	NODE_INFO = 0x11,
	PERMISSIVE = 0xffff,
	TIMEOUT_MS = 1000,
	RETRIES = 2,
	GROUP = 100, /* answers that are timed together */
	LOST_S = 10, /* longer than the retries of a MAD take */
};

static void die(const char *what, int rc)
{
	printf("%s: %d\n", what, rc);
	exit(1);
}

/* ibsim's preload waits in read() for a MAD that ibsim dropped: only a signal ends that. */
static void on_lost(int sig)
{
	static const char what[] = "no answer for 10 s: the subnet lost a MAD\n";
	ssize_t n = write(STDOUT_FILENO, what, sizeof what - 1);

	(void)sig;
	(void)n;
	_exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void send_one(int port, int agent, uint8_t *umad, uint32_t tid)
{
	uint8_t *mad = umad_get_mad(umad);
	uint64_t be = htobe64(tid);
	int rc;

	memset(mad, 0, MAD);
	mad[0] = 1;     /* base version */
	mad[1] = CLASS; /* hop count and pointer 0 */
	mad[2] = 1;
	mad[3] = GET;
	memcpy(mad + 8, &be, sizeof be);
	mad[17] = NODE_INFO;
	memset(mad + 32, 0xff, 4); /* DrSLID, DrDLID */
	umad_set_addr(umad, PERMISSIVE, 0, 0, 0);
	rc = umad_send(port, agent, umad, MAD, TIMEOUT_MS, RETRIES);
	if (rc)
		die("umad_send", rc);
}

static void receive_one(int port, uint8_t *umad)
{
	int len = MAD, rc = umad_recv(port, umad, &len, TIMEOUT_MS * (RETRIES + 2));

	if (rc < 0 || umad_status(umad))
		die("umad_recv", rc < 0 ? rc : umad_status(umad));
}

/* Opens so many files that nobody uses; they stay open until the program ends. */
static void open_idle(int n)
{
	struct rlimit fds;

	getrlimit(RLIMIT_NOFILE, &fds);
	fds.rlim_cur = fds.rlim_max;
	setrlimit(RLIMIT_NOFILE, &fds);
	for (int i = 0; i < n; i++) {
		int port = umad_open_port(NULL, 0), agent;

		if (port < 0)
			die("umad_open_port of an idle file", port);
		agent = umad_register(port, CLASS, 1, 0, NULL);
		if (agent < 0)
			die("umad_register of an idle file", agent);
	}
}

int main(int argc, char **argv)
{
	int window = argc >= 3 ? atoi(argv[1]) : 0, count = argc >= 3 ? atoi(argv[2]) : 0;
	int groups = (count + GROUP - 1) / GROUP, port, agent;
	double *us, sum = 0;
	uint32_t tid = 1;
	uint8_t *umad;

	if (window < 1 || count < 1) {
		printf("usage: umad_lat WINDOW COUNT [IDLE]\n");
		return 2;
	}
	pin(0);
	umad_init();
	open_idle(argc > 3 ? atoi(argv[3]) : 0);
	umad = umad_alloc(1, umad_size() + MAD);
	us = calloc(groups, sizeof *us);
	port = umad_open_port(NULL, 0);
	if (port < 0 || !umad || !us)
		die("umad_open_port", port);
	agent = umad_register(port, CLASS, 1, 0, NULL);
	if (agent < 0)
		die("umad_register", agent);
	signal(SIGALRM, on_lost);
	alarm(LOST_S);
	for (int i = 0; i < window; i++)
		send_one(port, agent, umad, tid++);
	for (int g = 0; g < groups; g++) {
		uint64_t began;

		alarm(LOST_S);
		began = now_ns();
		for (int i = 0; i < GROUP; i++) {
			receive_one(port, umad);
			send_one(port, agent, umad, tid++);
		}
		us[g] = (now_ns() - began) / 1000.0 / GROUP;
		sum += us[g];
	}
	printf("%.3f %.3f\n", sum / groups, median(us, groups));
	umad_close_port(port);
	return 0;
}
