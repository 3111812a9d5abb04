// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/origin.h"

#include "wire/roce.h"

enum origin_verdict origin_of(const struct origin *o, uint16_t port)
{
	if (o->weft)
		return port == ROCE_PORT ? ORIGIN_KNOWN : ORIGIN_FORGED;
	return !o->port || port == o->port ? ORIGIN_KNOWN : ORIGIN_OTHER;
}

void origin_fits(struct origin *o, uint16_t port, bool unreliable)
{
	bool first = !o->port;

	if (o->weft)
		return;
	o->port = port;
	if (!unreliable) {
		o->weft = first && port == ROCE_PORT;
		return;
	}
	o->row = port == ROCE_PORT ? o->row + 1 : 0;
	o->weft = o->row == ORIGIN_ROW;
}
