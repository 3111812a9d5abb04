// SPDX-License-Identifier: BSD-3-Clause
// Ports as programs open them, and MADs through them.  A port's id is its file descriptor.
#include "umad/umad.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "umad/attr.h"
#include "umad/choose.h"
#include "umad/debug.h"
#include "umad/file.h"
#include "umad/io.h"
#include "umad/newer.h"
#include "umad/port.h"
#include "umad/root.h"

static _Atomic bool has_pkey;

bool io_has_pkey(void)
{
	return atomic_load_explicit(&has_pkey, memory_order_relaxed);
}

int umad_init(void)
{
	return 0;
}

int umad_done(void)
{
	return 0;
}

static bool abi_is_known(void)
{
	char dir[PATH_MAX];
	unsigned version;

	if (root_path(dir, "infiniband_mad") || attr_number(dir, IB_UMAD_ABI_FILE, &version)) {
		log_line(LOG_LVL_WARN, "this fabric has no umad files: there is no "
				       "/sys/class/infiniband_mad/abi_version in it");
		return false;
	}
	return version >= IB_UMAD_ABI_VERSION;
}

static int open_port(const char *ca_name, int portnum, bool smi)
{
	struct choice chosen;
	int fd;

	if (!abi_is_known())
		return -EOPNOTSUPP;
	if (choose_port(ca_name, portnum, smi, &chosen))
		return -ENODEV;
	if (port_umad_number(chosen.ca_name, chosen.portnum) < 0)
		return -EINVAL;
	fd = umad_file_open(chosen.ca_name, chosen.portnum, O_RDWR | O_NONBLOCK);
	if (fd < 0) {
		errno = -fd;
		debug_trace(__func__, "%s port %d: %m", chosen.ca_name, chosen.portnum);
		return -EIO;
	}
	atomic_store_explicit(&has_pkey, !umad_file_enable_pkey(fd), memory_order_relaxed);
	debug_trace(__func__, "%s port %d is fd %d", chosen.ca_name, chosen.portnum, fd);
	return fd;
}

int umad_open_port(const char *ca_name, int portnum)
{
	return open_port(ca_name, portnum, false);
}

int umad_open_smi_port(const char *ca_name, int portnum)
{
	return open_port(ca_name, portnum, true);
}

int umad_close_port(int portid)
{
	close(portid);
	debug_trace(__func__, "fd %d", portid);
	return 0;
}

int umad_get_fd(int portid)
{
	return portid;
}

/* For a plain open(2), by a program under the path shim. */
int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	struct choice chosen;
	int number;

	if (choose_port(ca_name, portnum, false, &chosen))
		return -ENODEV;
	number = port_umad_number(chosen.ca_name, chosen.portnum);
	if (number < 0)
		return -EINVAL;
	snprintf(path, max, "/dev/infiniband/issm%d", number);
	return 0;
}

int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	struct ib_user_mad *mad = umad;
	ssize_t n = -EINVAL;

	mad->agent_id = agentid;
	mad->timeout_ms = timeout_ms;
	mad->retries = retries;
	if (umad_debug(-1) > 1)
		umad_dump(umad);
	if (length >= 0)
		n = umad_file_write(portid, umad, umad_size() + length);
	if (n == (ssize_t)umad_size() + length)
		return 0;
	errno = n < 0 ? -n : EIO;
	debug_trace(__func__, "fd %d agent %d length %d: %m", portid, agentid, length);
	return -EIO;
}

/* No wait for a MAD: -ETIMEDOUT, or -EIO with the reason in errno. */
static int refuse_wait(int err)
{
	errno = err;
	return err == ETIMEDOUT ? -ETIMEDOUT : -EIO;
}

/* Errors of a wait, not of what would be read after it. */
static bool is_of_waiting(int err)
{
	return err == ETIMEDOUT || err == EINTR || err == EBADF;
}

int umad_poll(int portid, int timeout_ms)
{
	int ret = umad_file_wait(portid, timeout_ms);

	return ret ? refuse_wait(-ret) : 0;
}

/* -errno, too, with the errno set.  *length changes only if the header says how much is there. */
static int refuse_recv(const struct ib_user_mad *mad, int *length, int err)
{
	if (err == ENOSPC)
		*length = (int)(mad->length - umad_size());
	errno = err;
	debug_trace("umad_recv", "length %d: %m", *length);
	return -err;
}

/* Timeout 0 does not wait at all, a negative one for ever. */
int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	struct ib_user_mad *mad = umad;
	size_t size;
	ssize_t n;

	if (!umad || !length || *length < 0) {
		errno = EINVAL;
		return -EINVAL;
	}
	size = umad_size() + (size_t)*length;
	n = timeout_ms ? umad_file_receive(portid, umad, size, timeout_ms)
		       : umad_file_read(portid, umad, size);
	if (timeout_ms && n < 0 && is_of_waiting((int)-n))
		return refuse_wait((int)-n);
	if (n < 0)
		return refuse_recv(mad, length, (int)-n);
	*length = n > (ssize_t)umad_size() ? (int)(n - umad_size()) : 0;
	return mad->agent_id;
}
