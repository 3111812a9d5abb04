// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/region_churn.h"

#include "tests/lib/check.h"

static void *come_and_go(void *arg)
{
	static uint8_t other[64];
	struct region_churn *c = arg;

	while (!atomic_load(&c->stop)) {
		struct ibv_mr *mr = ibv_reg_mr(c->pd, other, sizeof other, IBV_ACCESS_LOCAL_WRITE);

		CHECK(mr && ibv_dereg_mr(mr) == 0);
	}
	return NULL;
}

void region_churn_begin(struct region_churn *c, struct ibv_pd *pd)
{
	c->pd = pd;
	atomic_store(&c->stop, false);
	if (pthread_create(&c->thread, NULL, come_and_go, c))
		die("pthread_create");
}

void region_churn_end(struct region_churn *c)
{
	atomic_store(&c->stop, true);
	pthread_join(c->thread, NULL);
}
