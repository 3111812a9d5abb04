/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers to requests of other hosts that are over: REJ and SIDR_REP.  If the request comes again,
 * its answer got lost, or the network repeats itself.  The last ones alone are kept, and for
 * seconds; who asks again later asks anew.
 */
#pragma once

#include "cm/cm.h"

/* m, sent to id's peer just now or due if it asks again, answers id's request. */
void answer_keep(const struct cm_id *id, const struct cm_msg *m);

/* Answers a request, of that number and transaction id, as before; false: it is not known. */
bool answer_again(struct cm *cm, const struct mad_addr *from, uint32_t remote_comm, uint64_t tid);
