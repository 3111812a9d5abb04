/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that an accept() which failed did not post. */
#pragma once

#include "ti/xfer/connection.h"

/*
 * They come back as those would that were posted, with that status: by comp's callback, else in the
 * queue that accept(), connect() or listen() named.  c: NULL, its handle is stale.  Without any
 * lock.
 *
 * All must be the program's, and of the service of the connection, or of the queue where there is
 * none; else nothing happens to them, and TI_INVALID_PARAMETER is returned in place of status.
 * Where that service is not known or has ended, nothing says what they are, and nothing happens
 * either.
 */
ti_status_t give_back(
	struct conn *c, const ti_comp_info_t *comp, ti_data_element_t *list, ti_status_t status);
