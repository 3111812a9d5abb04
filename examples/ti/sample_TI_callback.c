// SPDX-License-Identifier: BSD-3-Clause
/* Keeps what an event tells of a link that is online. */
#include "sample.h"

void sample_TI_callback(IN ti_event_t event, IN const void *data, IN const void *context)
{
	proto_data_t *pd = (proto_data_t *)context;
	ti_transport_desc_t *tpd;

	switch (event) {
	case TI_EVENT_NETDEV_ONLINE:
		tpd = (ti_transport_desc_t *)data;
		*(ti_transport_desc_t *)&pd->tp.tpd = *tpd;
		pd->tp.online = TRUE;
		break;
	default:
		break;
	}
}
