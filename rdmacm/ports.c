// SPDX-License-Identifier: BSD-3-Clause
/*
 * Ports that weftd has lent to this process, for ids that want any: a resolve then needs no
 * round trip.  They stay ours while we and that weftd live; weftd learns which id has one when
 * the id connects.
 */
#include "rdmacm/ports.h"

#include "verbs/for_rdmacm.h"

enum { PORTS_MAX = 1 << 15 };

static struct {
	struct lock lock;
	uint32_t loan; /* counts new beginnings: what was lent before is no longer ours */
	unsigned n;
	uint16_t port[PORTS_MAX];
} ports = {.loan = 1};

void ports_forget(void)
{
	lock_take(&ports.lock);
	ports.n = 0;
	ports.loan++;
	lock_drop(&ports.lock);
}

void ports_forked_child(void)
{
	atomic_store_explicit(&ports.lock.word, 0, memory_order_relaxed);
	ports_forget();
}

static uint32_t take(uint16_t *port)
{
	uint32_t loan;

	lock_take(&ports.lock);
	loan = ports.n ? ports.loan : 0;
	if (loan)
		*port = ports.port[--ports.n];
	lock_drop(&ports.lock);
	return loan;
}

static uint32_t current_loan(void)
{
	uint32_t loan;

	lock_take(&ports.lock);
	loan = ports.loan;
	lock_drop(&ports.lock);
	return loan;
}

void port_give_back(uint16_t port, uint32_t loan)
{
	lock_take(&ports.lock);
	if (loan == ports.loan && ports.n < PORTS_MAX)
		ports.port[ports.n++] = port;
	lock_drop(&ports.lock);
}

bool port_claim(uint16_t port)
{
	bool found = false;

	lock_take(&ports.lock);
	for (unsigned i = 0; i < ports.n && !found; i++) {
		found = ports.port[i] == port;
		if (found)
			ports.port[i] = ports.port[--ports.n];
	}
	lock_drop(&ports.lock);
	return found;
}

int port_borrow(uint16_t *port, uint32_t *loan)
{
	while (!(*loan = take(port))) {
		struct proto_cm_loan loaned;
		uint32_t before = current_loan();
		int ret = weft_cm_call(OP_CM_LEND, NULL, 0, &loaned);

		if (ret)
			return ret;
		for (uint32_t i = 0; i < loaned.count; i++)
			port_give_back(loaned.first + i, before);
	}
	return 0;
}
