// SPDX-License-Identifier: BSD-3-Clause
/*
 * Scattered pages are registered and deregistered, with one thread and with two, 100,000 times:
 * the number of areas of the address space stays bounded, the contents stay, and auto does not
 * get slow.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum { PAGE = 4096, PAGES = 20000, LIVE = 64 };

struct part {
	const char *share, *what;
	int times;
};

static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void part(int fd, void *arg)
{
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const struct part *of = arg;
	const char *mode = of->what;
	struct ibv_pd *pd = ibv_alloc_pd(vp_open());
	size_t len = (size_t)PAGES * PAGE;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr[LIVE] = {0};
	unsigned before = areas(), peak = 0;
	pthread_t t;

	(void)fd;
	check_case("%s", mode);
	if (strstr(mode, "thread") && pthread_create(&t, NULL, sleeper, NULL))
		die("pthread_create");
	for (size_t i = 0; i < PAGES; i++)
		p[i * PAGE] = i;
	srand(3);
	for (int i = 0; i < of->times; i++) {
		struct ibv_mr **slot = &mr[i % LIVE];

		if (*slot && ibv_dereg_mr(*slot))
			die("dereg_mr");
		*slot = ibv_reg_mr(pd, p + (size_t)(rand() % PAGES) * PAGE, PAGE, rights);
		if (!*slot)
			die("reg_mr");
		if (i % 5000 == 0 && areas() > peak)
			peak = areas();
	}
	for (int i = 0; i < LIVE; i++)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	for (size_t i = 0; i < PAGES; i++)
		CHECK_EQ(p[i * PAGE], (uint8_t)i);
	/* An eighth of what the kernel allows, and as many between them. */
	CHECK_RANGE(peak, 0, before + 2 * 65530 / 8);
	if (!strstr(mode, "thread"))
		CHECK_RANGE(areas(), 0, before + 8);
	CHECK_RANGE(share_count("conversions"), 8, INT64_MAX);
}

int main(void)
{
	static const struct part parts[] = {{"auto", "auto", 100000},
		{"auto", "auto with threads", 100000}, {"always", "always", 20000},
		{"always", "always with threads", 3000}};

	for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
		struct vp_child c;

		setenv("WEFT_SHARE", parts[i].share, 1);
		c = vp_fork(part, (void *)&parts[i]);
		vp_join(&c);
	}
	return check_result();
}
