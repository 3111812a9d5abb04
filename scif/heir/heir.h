/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that a child inherited by fork, or its children from it.  The queue pair stays where it
 * was made: the heir asks the process that made the endpoint to make the call for it, by a socket
 * that comes with the fork and that all descendants share.  With each question goes the fd, which
 * proves that the heir has the endpoint and by which readiness is kept true for all, and a socket
 * for the answer.  The endpoint ends with the process that made it, whoever has the fd.
 */
#pragma once

#include <stdbool.h>

/*
 * Around a fork; wanted: some endpoint of ours is open.  -1, or the socket to the child that the
 * parent's thread watches, and ends.
 */
void heir_before_fork(bool wanted);
int heir_parent_forked(void);
void heir_end(int sock);
/* In the child: the socket to the parent, by which endpoints that were its until now are asked for;
 * -1: none. */
int heir_child_forked(void);
