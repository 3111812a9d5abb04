/* SPDX-License-Identifier: BSD-3-Clause */
/* What scif_kernel.c has done in the user's convention. */
#pragma once

#include <stddef.h>

/* The calls of <scif.h> on fd, blocking. */
int user_send_bytes(int fd, const char *bytes, int len);
int user_recv_bytes(int fd, char *bytes, int len);
int user_close_it(int fd);
/* Is there something to receive within ms? */
int user_poll_in(int fd, long ms);
/* For scif_fork(): dials the port that it is told, and sends back what comes. */
void user_echo(int in, int out);
