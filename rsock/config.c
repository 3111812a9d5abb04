// SPDX-License-Identifier: BSD-3-Clause
/* Defaults, which an administrator may set in /etc/rdma/rsocket: one integer in each file. */
#include "rsock/config.h"

#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/spin.h"

static struct {
	struct rs_options opt;
	uint64_t look, wake;
} config;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int setting(const char *name, int otherwise, int min, int max)
{
	char path[128];
	int n = otherwise;
	FILE *f;

	snprintf(path, sizeof path, "/etc/rdma/rsocket/%s", name);
	f = fopen(path, "re");
	if (!f)
		return otherwise;
	if (fscanf(f, "%d", &n) != 1)
		n = otherwise;
	fclose(f);
	return n < min ? min : n > max ? max : n;
}

static void read_config(void)
{
	struct rs_options *o = &config.opt;

	o->rcvbuf = setting("mem_default", 1 << 17, RS_MIN_BUF, RS_MAX_BUF);
	o->sndbuf = setting("wmem_default", 1 << 17, RS_MIN_BUF, RS_MAX_BUF);
	o->sqsize = setting("sqsize_default", 384, RS_MIN_RQ, RS_MAX_WR);
	o->rqsize = setting("rqsize_default", 384, RS_MIN_RQ, RS_MAX_WR);
	o->inline_size = setting("inline_default", 64, 0, RS_MAX_INLINE);
	o->iomap_size = setting("iomap_size", 0, 0, RS_MAX_IOMAP);
	config.look =
		spin_limit_ns(setting("polling_time", 10, 0, 1000000) * (uint64_t)NSEC_PER_USEC);
	config.wake = setting("wake_up_interval", 5000, 100, 3600000) * (uint64_t)NSEC_PER_MSEC;
}

void rs_default_options(struct rs_options *opt)
{
	pthread_once(&once, read_config);
	*opt = config.opt;
}

uint64_t rs_nap_ns(void)
{
	return config.wake;
}

uint64_t rs_look_ns(void)
{
	return config.look;
}
