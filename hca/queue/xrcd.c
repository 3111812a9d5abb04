// SPDX-License-Identifier: BSD-3-Clause
/* XRC domains: anonymous, or named by the inode of a file, then the same in all processes. */
#include "hca/queue/xrcd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/obj/qp.h"
#include "hca/proc/member.h"
#include "hca/proc/proc.h"

static _Atomic uint32_t next_anonymous = 1;

#define NAMED_BY_FILE (1ull << 63)

static int refuse(int err, const char *why)
{
	log_refusal("open_xrcd refused: %s", why);
	return err;
}

/* An FNV-1a hash of the inode's name. */
static uint64_t hash(const uint8_t key[16])
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (int i = 0; i < 16; i++)
		h = (h ^ key[i]) * 0x100000001b3ull;
	return h;
}

static int key_of(int fd, uint8_t key[16])
{
	struct stat st;
	uint64_t dev, ino;

	if (fstat(fd, &st) < 0)
		return -errno;
	dev = st.st_dev;
	ino = st.st_ino;
	memcpy(key, &dev, sizeof dev);
	memcpy(key + 8, &ino, sizeof ino);
	return 0;
}

static int open_named(struct hca_xrcd *x, int fd, int oflag)
{
	uint8_t key[16];
	uint32_t at = 0, index;
	int rc = key_of(fd, key);
	bool exists;

	if (rc)
		return rc;
	exists = member_next(MEMBER_XRCD, key, &at) ||
		 member_find(MEMBER_XRCD, proc_at()->attach_id, key) >= 0;
	if (!exists && !(oflag & O_CREAT))
		return refuse(-EAGAIN, "there is no domain of that file, and no O_CREAT");
	if (exists && oflag & O_CREAT && oflag & O_EXCL)
		return refuse(-EINVAL, "the domain of that file exists, and O_EXCL is given");
	rc = member_add(MEMBER_XRCD, proc_at()->attach_id, key, &index);
	if (rc)
		return rc;
	x->member = index + 1;
	x->id = hash(key) | NAMED_BY_FILE;
	return 0;
}

static int open_anonymous(struct hca_xrcd *x, int oflag)
{
	if (!(oflag & O_CREAT))
		return refuse(-EINVAL, "without a file it needs O_CREAT");
	x->id = (uint64_t)proc_at()->attach_id << 32 |
		atomic_fetch_add_explicit(&next_anonymous, 1, memory_order_relaxed);
	return 0;
}

int hca_xrcd_open(int fd, int oflag, struct hca_xrcd **out)
{
	int rc = proc_attach(NULL);
	struct hca_xrcd *x;

	if (rc)
		return rc;
	if (oflag & ~(O_CREAT | O_EXCL))
		return refuse(-EINVAL, "unknown flags");
	x = calloc(1, sizeof *x);
	if (!x)
		return -ENOMEM;
	x->epoch = proc_epoch();
	rc = fd == -1 ? open_anonymous(x, oflag) : open_named(x, fd, oflag);
	if (rc) {
		free(x);
		return rc;
	}
	*out = x;
	return 0;
}

int hca_xrcd_close(struct hca_xrcd *x)
{
	if (x->epoch == proc_epoch()) {
		if (atomic_load_explicit(&x->users, memory_order_acquire))
			return log_busy("ibv_close_xrcd", "QPs or SRQs use the domain");
		if (x->member)
			member_del(x->member - 1);
	}
	free(x);
	return 0;
}

int hca_qp_open(struct hca_xrcd *x, uint32_t qpn, struct hca_qp **out)
{
	struct hca_qp *qp;

	if (x->epoch != proc_epoch())
		return -EINVAL;
	lock_take(&x->lock);
	for (qp = x->qps; qp && qp->me.qpn != qpn; qp = qp->shared_next)
		;
	if (qp)
		qp->opens++;
	lock_drop(&x->lock);
	*out = qp;
	return qp ? 0 : -ENOENT;
}

bool xrcd_last_close(struct hca_qp *qp)
{
	bool last;

	lock_take(&qp->xrcd->lock);
	last = !qp->opens;
	qp->opens -= !last;
	lock_drop(&qp->xrcd->lock);
	return last;
}
