// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/claims.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/draw.h"
#include "base/log.h"
#include "base/unix_names.h"
#include "rdv/fabrics.h"

enum { DRAWS = 64, SAMPLE = 8 };

/* So long it is believed that all are taken. */
#define NONE_FOR_NS (10 * NSEC_PER_SEC)

/* ---- what outlives weftd ---- */

static bool bit(const struct claims *c, uint32_t n)
{
	return c->ours[n / 8] >> n % 8 & 1;
}

/* The file is a help for the next weftd: without it there is none. */
static void set_bit(struct claims *c, uint32_t n, bool on)
{
	if (bit(c, n) == on)
		return;
	c->ours[n / 8] ^= 1u << n % 8;
	if (c->file >= 0)
		(void)!pwrite(c->file, &c->ours[n / 8], 1, n / 8);
}

static bool is_free(uint32_t n)
{
	int fd = claim_take(n);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void claims_start(struct claims *c, const struct rdv_paths *paths)
{
	int fd = rdv_open_file(paths, "qpns");

	c->file = fd < 0 ? -1 : fd;
	if (fd >= 0)
		(void)!pread(fd, c->ours, sizeof c->ours, 0);
	for (uint32_t n = 0; n < CLAIMS; n++)
		if (bit(c, n) && is_free(n))
			set_bit(c, n, false);
}

void claims_end(struct claims *c, const struct rdv_paths *paths, bool stay)
{
	if (!stay)
		unlinkat(paths->dir_fd, rdv_file_name(paths, "qpns").s, 0);
	if (c->file >= 0)
		close(c->file);
	c->file = -1;
}

/* ---- taking one ---- */

static void hold(struct claims *c, uint32_t n, int fd)
{
	c->socket[n] = fd + 1;
	set_bit(c, n, true);
}

/* n; -EADDRINUSE: it is somebody's. */
static int try(struct claims *c, uint32_t n, const uint32_t *used)
{
	int fd = used[n] || c->socket[n] ? -EADDRINUSE : claim_take(n);

	if (fd < 0)
		return fd;
	hold(c, n, fd);
	return n;
}

static uint32_t draw(void)
{
	return 1 + draw_below(CLAIMS - 1);
}

static int try_some(struct claims *c, const uint32_t *used)
{
	int ret = -EADDRINUSE;

	for (int i = 0; i < DRAWS && ret == -EADDRINUSE; i++)
		ret = try(c, draw(), used);
	return ret;
}

static int try_all(struct claims *c, const uint32_t *used)
{
	uint32_t first = draw();
	int ret = -EADDRINUSE;

	for (uint32_t i = 0; i < CLAIMS - 1 && ret == -EADDRINUSE; i++)
		ret = try(c, 1 + (first + i) % (CLAIMS - 1), used);
	return ret;
}

/* Some of all that are taken are as good as any others. */
static void tell_whose(void)
{
	char who[128] = "somebody who cannot be seen";
	uid_t uid;

	for (int i = 0; i < SAMPLE; i++)
		if (claim_owner(draw(), &uid) && uid != geteuid()) {
			snprintf(who, sizeof who, "user %u", (unsigned)uid);
			break;
		}
	log_line(LOG_LVL_ERROR,
		"all numbers of queue pairs of this host are taken, by %s among others: those of "
		"this fabric may be another's, too (ls @weft-qpn: ss -xl)",
		who);
}

int claims_take(struct claims *c, const uint32_t used[CLAIMS])
{
	int ret = try_some(c, used);

	if (ret == -EADDRINUSE && (!c->none_ns || clock_ns() - c->none_ns > NONE_FOR_NS))
		ret = try_all(c, used);
	if (ret != -EADDRINUSE) {
		c->none_ns = ret < 0 ? c->none_ns : 0;
		return ret;
	}
	if (!c->none_ns)
		tell_whose();
	c->none_ns = clock_ns();
	return -ENOSPC;
}

/* ---- of a predecessor ---- */

/* Of a weftd that lives, and is not us. */
static bool is_anothers(uint32_t n)
{
	struct rdv_fabric all[RDV_FABRICS_MAX];
	struct ucred cred;
	int fd = claim_meet(n, &cred);
	size_t n_all = 0;

	if (fd == -EAGAIN)
		return false; /* nobody reads there: as a process that has come from us */
	if (fd < 0)
		return true;
	close(fd);
	if (cred.uid != geteuid() || cred.pid <= 0)
		return true;
	if (cred.pid != getpid())
		n_all = rdv_fabrics_find(all, 0);
	for (size_t i = 0; i < n_all; i++)
		if (all[i].pid == cred.pid)
			return true;
	return false;
}

static void remove_resting(struct claims *c, uint32_t i)
{
	c->n_resting--;
	memmove(&c->resting[i], &c->resting[i + 1], (c->n_resting - i) * sizeof c->resting[i]);
}

static void rouse(struct claims *c, uint32_t n)
{
	for (uint32_t i = 0; i < c->n_resting; i++)
		if (c->resting[i] == n)
			remove_resting(c, i);
}

int claims_keep(struct claims *c, uint32_t n, int fd)
{
	if (fd >= 0 && !claim_is(fd, n))
		return -EINVAL;
	rouse(c, n);
	if (c->socket[n]) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (fd < 0)
		fd = claim_take(n);
	if (fd == -EADDRINUSE && !is_anothers(n)) {
		set_bit(c, n, true);
		return 0;
	}
	if (fd == -EADDRINUSE)
		set_bit(c, n, false);
	if (fd < 0)
		return fd == -EADDRINUSE ? -EEXIST : fd;
	hold(c, n, fd);
	return 0;
}

/* ---- giving it back ---- */

static void let_go(struct claims *c, uint32_t n)
{
	if (c->socket[n])
		close(c->socket[n] - 1);
	c->socket[n] = 0;
	set_bit(c, n, false);
}

void claims_rest(struct claims *c, uint32_t n)
{
	if (!c->socket[n]) {
		set_bit(c, n, false);
		return;
	}
	if (c->n_resting == CLAIMS_RESTING) {
		let_go(c, c->resting[0]);
		remove_resting(c, 0);
	}
	c->resting[c->n_resting++] = n;
}

int claims_socket(const struct claims *c, uint32_t n)
{
	return n < CLAIMS ? c->socket[n] - 1 : -1;
}

bool claims_are_ours(const struct claims *c, uint32_t n)
{
	return n && n < CLAIMS && bit(c, n);
}
