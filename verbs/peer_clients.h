/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer clients that are loaded for a program: WEFT_PEER_CLIENTS=a.so:b.so. */
#pragma once

/*
 * Loads the libraries that the environment names, at the first call of the process, in order, and
 * calls the init_module() of each that has one.  What does not load, fails or registers no client
 * is named in the log; the others are loaded all the same.  Privileged programs load none.
 */
void peer_clients_load(void);
