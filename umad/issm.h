/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Opens the issm file of that port: while it is open, in whatever process, the port's IsSM bit is
 * set.  Waits in poll(2) while another one has it, or with O_NONBLOCK -EAGAIN; -EINTR: a signal.
 * The fd is a socket, to be closed and nothing else.  A cancellation point.  Errors else as
 * umad_file_open().
 */
int umad_issm_open(const char *device, int port, int flags);
