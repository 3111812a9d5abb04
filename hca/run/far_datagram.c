// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/far_datagram.h"

#include "hca/run/far.h"

/* The n-th of those who carry datagrams, from *at on. */
static const struct far_ops *next(unsigned *at)
{
	const struct far_ops *ops;

	while ((ops = far_nth((*at)++)) && !ops->datagrams)
		;
	return ops;
}

const struct datagram_ops *far_datagram_route(struct seg_path *path)
{
	const struct far_ops *ops;
	unsigned at = 0;

	while ((ops = next(&at)))
		if (!ops->route(path))
			return ops->datagrams;
	return NULL;
}

const struct datagram_ops *far_datagram_beside(void)
{
	const struct far_ops *ops;
	unsigned at = 0;

	while ((ops = next(&at)))
		if (ops->datagrams->beside)
			return ops->datagrams;
	return NULL;
}

void far_datagram_listen(struct hca_qp *qp, bool takes)
{
	const struct far_ops *ops;
	unsigned at = 0;

	while ((ops = next(&at)))
		ops->datagrams->listen(qp, takes);
}

void far_datagram_join(const uint8_t mgid[16], bool joins)
{
	const struct far_ops *ops;
	unsigned at = 0;

	while ((ops = next(&at)))
		ops->datagrams->join(mgid, joins);
}
