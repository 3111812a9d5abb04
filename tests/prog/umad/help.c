// SPDX-License-Identifier: BSD-3-Clause
#include "tests/prog/umad/help.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdv/admin.h"

enum { MOMENT_MS = 20, AT_METHOD = 3, AT_CLASS = 1, AT_VERSION = 2, AT_TID = 8 };

int open_plain(int flags)
{
	int fd = umad_file_open("weft0", 1, flags | O_RDWR);

	T_CHECK(fd >= 0);
	return fd;
}

int open_file(int flags)
{
	int fd = open_plain(flags);

	T_OK(umad_file_enable_pkey(fd));
	return fd;
}

uint32_t add_agent(int fd, uint8_t mgmt_class, uint8_t rmpp_version)
{
	struct umad_agent a = {.qpn = 1,
		.mgmt_class = mgmt_class,
		.class_version = 1,
		.rmpp_version = rmpp_version,
		.method_mask = {1 << METHOD}};

	T_OK(umad_file_register(fd, &a));
	return a.id;
}

uint32_t add_sender(int fd, uint8_t rmpp_version)
{
	struct umad_agent a = {.qpn = 1, .rmpp_version = rmpp_version};

	T_OK(umad_file_register(fd, &a));
	return a.id;
}

static json_t *status(void)
{
	json_t *o;
	char *text;

	T_OK(rdv_status_json(NULL, &text));
	o = json_loads(text, 0, NULL);
	free(text);
	T_CHECK(o);
	return o;
}

/* Entry 0 of the port's table. */
static void own_gid(uint8_t gid[16])
{
	static uint8_t known[16];
	static bool is_known;
	json_t *o;

	if (!is_known) {
		o = status();
		T_EQUAL(inet_pton(AF_INET6,
				json_string_value(json_object_get(
					json_array_get(json_object_get(o, "gids"), 0), "gid")),
				known),
			1);
		json_decref(o);
		is_known = true;
	}
	memcpy(gid, known, sizeof known);
}

struct packet request(uint32_t agent, uint8_t mgmt_class, uint32_t tid)
{
	struct packet p = {
		.hdr = {.id = agent, .be_qpn = htobe32(1), .grh_present = 1, .hop_limit = 64},
		.mad = {1, mgmt_class, 1, METHOD},
	};
	uint32_t be_tid = htobe32(tid);

	own_gid(p.hdr.gid);
	memcpy(p.mad + AT_TID + sizeof be_tid, &be_tid, sizeof be_tid);
	for (int i = 64; i < MAD_BYTES; i++)
		p.mad[i] = (uint8_t)(tid + (uint32_t)i);
	return p;
}

struct packet answer(uint32_t agent, const struct packet *to)
{
	struct packet p = *to;

	p.hdr.id = agent;
	p.hdr.length = 0;
	p.mad[AT_METHOD] |= RESPONSE;
	return p;
}

static uint32_t half_tid(const struct packet *p, unsigned half)
{
	uint32_t be_tid;

	memcpy(&be_tid, p->mad + AT_TID + half * sizeof be_tid, sizeof be_tid);
	return be32toh(be_tid);
}

uint32_t low_tid(const struct packet *p)
{
	return half_tid(p, 1);
}

uint32_t high_tid(const struct packet *p)
{
	return half_tid(p, 0);
}

void put(int fd, const struct packet *p)
{
	T_EQUAL(umad_file_write(fd, p, sizeof *p), sizeof *p);
}

void await(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	T_EQUAL(poll(&pfd, 1, LONG_MS), 1);
	T_EQUAL(umad_file_wait(fd, LONG_MS), 0);
}

void get(int fd, struct packet *p)
{
	await(fd);
	T_EQUAL(umad_file_read(fd, p, sizeof *p), sizeof *p);
}

void quiet(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN | POLLOUT};

	T_EQUAL(umad_file_wait(fd, MOMENT_MS), -ETIMEDOUT);
	T_EQUAL(poll(&pfd, 1, 0), 1);
	T_EQUAL(pfd.revents, POLLOUT);
}

/* ---- weftd ---- */

int64_t umad_status(const char *name)
{
	json_t *o = status(), *umad = json_object_get(o, "umad");
	int64_t n = json_integer_value(json_object_get(umad, name));

	json_decref(o);
	return n;
}

int64_t umad_drops(const char *name)
{
	json_t *o = status(), *drops = json_object_get(json_object_get(o, "umad"), "drops");
	int64_t n = json_integer_value(json_object_get(drops, name));

	json_decref(o);
	return n;
}

static int64_t issm_files(void)
{
	json_t *o = status();
	int64_t n = json_integer_value(json_object_get(o, "issm_files"));

	json_decref(o);
	return n;
}

static bool issm_is(void *arg)
{
	return issm_files() == *(int64_t *)arg;
}

void await_issm(int64_t n)
{
	T_CHECK(t_until(issm_is, &n, LONG_MS));
}

struct number {
	const char *name;
	int64_t n;
};

static bool is_so(void *arg)
{
	const struct number *want = arg;

	return umad_status(want->name) == want->n;
}

void await_status(const char *name, int64_t n)
{
	struct number want = {name, n};

	if (!t_until(is_so, &want, LONG_MS))
		T_EQUAL(umad_status(name), n);
}

static bool has_gone(void *arg)
{
	int32_t pid;

	(void)arg;
	return rdv_ping(NULL, &pid) < 0;
}

pid_t find_weftd(void)
{
	int32_t pid;

	T_OK(rdv_ping(NULL, &pid));
	return pid;
}

void kill_weftd(void)
{
	T_SYS(kill(find_weftd(), SIGKILL));
	T_CHECK(t_until(has_gone, NULL, LONG_MS));
}
