/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer clients that a program gets by itself: WEFT_PEER_CLIENTS=a.so:b.so, and its GPUs'. */
#pragma once

/*
 * Loads the libraries that the environment names, at the first call of the process, in order, and
 * calls the init_module() of each that has one.  What does not load, fails or registers no client
 * is named in the log; the others are loaded all the same.  Privileged programs load none.  At each
 * call the GPUs come after them whose driver the program has loaded (peermem/gpu.h).
 */
void peer_clients_load(void);
