/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks after a program that libweftti may let wait for ever, and tells what each thing of a
 * service waits for.  It looks into the library: its objects are linked with the program.
 */
#pragma once

#include "ti/core/ti.h"

/* Starts the thread; what the program does is to take at most that long from now on. */
void watch_start(unsigned limit_s);

/* What the program does from now on, and has the whole time for; what is a literal. */
void watch_phase(const char *what);

/*
 * Remembers a service, or a connection, to be told of if they have not ended: as many as there is
 * room for, with references.
 */
void watch_service(ti_handle_t h);
void watch_conn(ti_conn_handle_t h);

/* Forgets them all. */
void watch_forget(void);
