// SPDX-License-Identifier: BSD-3-Clause
/* Asks for the events of links, for a protocol. */
#include "sample.h"

boolean_t sample_TI_bind(IN proto_data_t *pd)
{
	ti_status_t status;

	pd->tp.bound = FALSE;
	pd->link_dev_name = "IBoIP"; /* no instance number: all such devices */
	status = ti_ops->events_register(pd, sample_TI_callback);
	return (status == TI_SUCCESS ? TRUE : FALSE);
}
