/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A umad file: one port's MADs between this process and weftd, as /dev/infiniband/umadN is between
 * a process and the kernel (its rules: Documentation/infiniband/user_mad.rst).
 *
 * The fd is a real one: poll(2), select(2) and epoll(7) show that there is something to be read, or
 * that the device is gone; dup(2), fork(2), exec(2) and SCM_RIGHTS hand the file on, and its last
 * close(2) unregisters its agents.  It need not be closed by a function of this header.
 *
 * A message is a header (struct ib_user_mad, 64 bytes, or 56 without the P_Key index) and a MAD
 * behind it.  An id is the number of an agent's slot in the file, 0 to 31.
 *
 * All functions return 0 or more, or a negative errno; they never set errno.  write, read, wait and
 * receive are cancellation points, with no lock held and nothing to be undone where they wait; read
 * and wait for as long as it takes.  Thread safe.  Errors of all: -EBADF no umad file; -EIO the
 * device was removed, or weftd has died: the file stays so until it is closed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What an agent is to be: struct ib_user_mad_reg_req and _reg_req2 of the kernel, unpacked. */
struct umad_agent {
	uint32_t id;  /* set on success */
	uint32_t qpn; /* 0 for classes 0x01 and 0x81, else 1 */
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t rmpp_version;    /* 1: the file splits and joins messages (RMPP) */
	uint32_t oui;            /* 24 bits, of classes 0x30 to 0x4f */
	uint32_t flags;          /* UMAD_USER_RMPP; register2 alone */
	uint64_t method_mask[2]; /* bit n: requests of method n come to this agent */
};

/*
 * Opens the file of that port; flags: O_NONBLOCK or 0, as for open(2).  Returns an fd, CLOEXEC only
 * if flags has O_CLOEXEC, as the kernel's: programs hand it on.  -ENODEV no such device or port;
 * -EMFILE, -ENOMEM; those of rdv/rdv.h.
 */
int umad_file_open(const char *device, int port, int flags);

/*
 * From now on headers have a P_Key index.  -EINVAL: an agent was registered before.  May be
 * repeated.
 */
int umad_file_enable_pkey(int fd);

/*
 * Registers an agent, without flags.  -EINVAL: what user_mad.rst and the kernel refuse (a class,
 * QP, RMPP version or OUI that do not go together; a method that another agent of the port has);
 * -EPROTONOSUPPORT: QP 0 of a port without a subnet management interface; -ENOMEM: 32 agents;
 * -EPIPE: the device was removed.  Blocks for a round trip to weftd.
 */
int umad_file_register(int fd, struct umad_agent *agent);

/*
 * The same with flags, and headers have a P_Key index if it is the first thing done with the file.
 * -EINVAL also for an unknown flag: then agent->flags is what is known; -ENOTTY: no such call.
 */
int umad_file_register2(int fd, struct umad_agent *agent);

/* Unregisters an agent; its sends end without an answer.  -EINVAL: there is none of that id. */
int umad_file_unregister(int fd, uint32_t id);

/*
 * Sends a message of len bytes; the header names agent, address, timeout and retries.  Returns len.
 * -EINVAL: too short, too long without RMPP, a TID in flight already, or no such id; -EIO also: no
 * agent in that slot; -EFAULT: msg is NULL, or leads nowhere; -ENOBUFS: too much waits for its
 * answer.  Never -EAGAIN: waits for weftd to take it, up to 5 s (-EIO), and while another thread of
 * the process is reading a backlog.
 */
ssize_t umad_file_write(int fd, const void *msg, size_t len);

/*
 * Receives a message: its length, which stands in the header, too.  A send that was not answered
 * comes back with status ETIMEDOUT.  -EAGAIN: none, with O_NONBLOCK; else waits (-EINTR).  -EINVAL:
 * len cannot hold a header and a MAD; -ENOSPC: a message of several segments is longer than len;
 * header and first segment are in buf, the header has the length; -EFAULT: buf is NULL, or not long
 * enough in truth.  All three leave the message.
 */
ssize_t umad_file_read(int fd, void *buf, size_t len);

/*
 * Waits until there is something to be read, or the device is gone, which read then says: 0.
 * -ETIMEDOUT: not within timeout_ms; negative: waits on.  -EINTR: a signal.
 */
int umad_file_wait(int fd, int timeout_ms);

/*
 * umad_file_wait() and umad_file_read() in one: waits for a message whatever O_NONBLOCK says, and
 * takes it.  Errors of both, but never -EAGAIN: what another reader took is waited for again.
 */
ssize_t umad_file_receive(int fd, void *buf, size_t len, int timeout_ms);
