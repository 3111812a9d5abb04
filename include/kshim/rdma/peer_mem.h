/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer memory API over the shim's types.  Leaves a note in the library which generation it was
 * compiled for, which weft peercheck reads.
 */
#pragma once

/* Those that clients rely on to come with it. */
#include <linux/device.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/types.h>

#include "../../rdma/peer_mem.h"

#define KSHIM_TEXT_(text) #text
#define KSHIM_TEXT(text)  KSHIM_TEXT_(text)

extern const char weft_peer_generation[2];
__attribute__((weak, visibility("default"))) const char weft_peer_generation[2] =
	KSHIM_TEXT(PEER_MEM_GENERATION);
