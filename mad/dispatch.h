/* SPDX-License-Identifier: BSD-3-Clause */
/* What has come: whether it makes sense, and who gets it. */
#pragma once

#include "mad/mad.h"

/* A MAD has come to the QP from->qp. */
void mad_receive(struct mad_port *port, const struct mad_addr *from, const uint8_t mad[MAD_SIZE]);

/* A word for each reason to drop a MAD, as weft status prints it. */
const char *mad_drop_name(enum mad_drop why);
