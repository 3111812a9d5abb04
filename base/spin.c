// SPDX-License-Identifier: BSD-3-Clause
#include "base/spin.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/at_open.h"
#include "base/clock.h"
#include "base/log.h"

enum { MAX_US = 1000000 };

static pthread_once_t limit_once AT_OPEN_DATA = PTHREAD_ONCE_INIT;
static pthread_once_t cpus_once = PTHREAD_ONCE_INIT;
static uint64_t limit_ns = UINT64_MAX; /* that: none was set */
static bool alone;

static void count_cpus(void)
{
	alone = sysconf(_SC_NPROCESSORS_ONLN) < 2;
}

static void read_limit(void)
{
	const char *text = secure_getenv("WEFT_SPIN_US");
	char *end;
	long us;

	if (!text || !*text)
		return;
	us = strtol(text, &end, 10);
	if (end == text || *end || us < 0 || us > MAX_US)
		log_line(LOG_LVL_WARN,
			"WEFT_SPIN_US=%.40s is no number of microseconds from 0 to %d, and counts "
			"as not set; correct or unset it",
			text, MAX_US);
	else
		limit_ns = us * (uint64_t)NSEC_PER_USEC;
}

void spin_check(void)
{
	pthread_once(&limit_once, read_limit);
}

uint64_t spin_limit_ns(uint64_t usual)
{
	spin_check();
	pthread_once(&cpus_once, count_cpus);
	if (alone)
		return 0;
	return limit_ns == UINT64_MAX ? usual : limit_ns;
}
