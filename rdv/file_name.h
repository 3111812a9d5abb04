/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a process knows a umad or issm file that it did not open, having got it by exec(2) or
 * SCM_RIGHTS: weftd gives the socket that it is a name, by which getsockname(2) tells it from all
 * others in one system call.  The name is in the abstract namespace and begins with weft-umadN or
 * weft-issmN (`ss -x` shows it), after the device file.  Anybody may give that name to a socket: it
 * says for whom weftd should be asked, and no more.
 */
#pragma once

/* The last is no socket, and without a name: only who opened it knows. */
enum file_kind { FILE_OTHER, FILE_UMAD, FILE_ISSM, FILE_UVERBS };

/*
 * Names a socket, which has no name yet and no peer outside, after the device file of that kind and
 * number.  0 or -errno; without a name the file serves only those who open or duplicate it.
 */
int file_name_set(int fd, enum file_kind kind, unsigned number);

/* The kind of an fd; FILE_OTHER also if it is closed, or no socket.  Keeps errno. */
enum file_kind file_name_kind(int fd);

/* The same, and the number of the device file. */
enum file_kind file_name_look(int fd, unsigned *number);
