/* SPDX-License-Identifier: BSD-3-Clause */
/* A note in the library which generation it was compiled for: weft peercheck reads it. */
#pragma once

#define KSHIM_TEXT_(text) #text
#define KSHIM_TEXT(text)  KSHIM_TEXT_(text)

extern const char weft_peer_generation[2];
__attribute__((weak, visibility("default"))) const char weft_peer_generation[2] =
	KSHIM_TEXT(PEER_MEM_GENERATION);
