/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer memory API over the shim's types.  Of a client that has its own it takes nothing. */
#pragma once

/* Those that clients rely on to come with it. */
#include <linux/device.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/types.h>

#ifndef RDMA_PEER_MEM_H
#include "../../rdma/peer_mem.h"
#endif
#ifdef PEER_MEM_GENERATION
#include <kshim_note.h>
#endif
