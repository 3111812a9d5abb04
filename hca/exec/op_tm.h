/* SPDX-License-Identifier: BSD-3-Clause */
/* A SEND to a shared receive queue that matches tags. */
#pragma once

#include "hca/exec/work.h"

/*
 * Executes it: into the receive whose tag fits, without its header, or whole into an untagged one.
 * A rendezvous that fits also reads the data and tells the requester that it is done.
 */
enum step op_tm_send(struct work *w);
