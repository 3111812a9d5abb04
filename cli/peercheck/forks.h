/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that the client makes: a module of a kernel makes none, and they may outlive a
 * scenario.  Its keeper ends them; here is told in which function they are made.
 */
#pragma once

/* From now on those of this process, which is a scenario's, are noted. */
void forks_begin(void);

/*
 * In or behind a function of the client, or NULL: in none.  Has a process been made in it?  That is
 * noted.  A child that comes back from there would go on as a second checker: it ends here.
 */
void forks_guard(const char *in);

/* Around a function that other threads may be in, too. */
void forks_enter(void);
void forks_leave(const char *in);

/* So many were there when the process of a scenario had ended, whose record is in use here. */
void forks_judge_left(unsigned n);
