// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/export.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "hca/mem/mr.h"
#include "hca/mem/mr_kinds.h"
#include "hca/mem/share.h"
#include "hca/mem/share_export.h"
#include "hca/mem/share_words.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "pages/mapped.h"
#include "pages/vma.h"

static int error_of(enum share_reason why)
{
	switch (why) {
	case SHARE_TOO_LARGE:
	case SHARE_BUDGET:
	case SHARE_AREAS:
	case SHARE_KERNEL:
		return -ENOMEM;
	case SHARE_MIXED_ATOMICS:
	case SHARE_ARENA_IN_USE:
	case SHARE_QUARANTINE:
	case SHARE_PEER_STOPPED:
	case SHARE_PINNED:
		return -EBUSY;
	default:
		return -EOPNOTSUPP;
	}
}

static int refuse(const struct hca_mr *mr, enum share_reason why)
{
	log_refusal("exporting %#llx+%#llx refused, others cannot map it: %s",
		(unsigned long long)mr->addr, (unsigned long long)mr->length, share_words(why));
	return error_of(why);
}

static int arena_inode(uint64_t *ino)
{
	int saved = errno, fd = rdv_arena_fd();
	struct stat st;
	bool ok = fd >= 0 && fstat(fd, &st) == 0;

	errno = saved;
	if (ok)
		*ino = st.st_ino;
	return ok ? 0 : -EOPNOTSUPP;
}

static void publish(const struct hca_mr *mr, bool writable)
{
	struct seg_mr *s = &proc_seg()->mr[mr->index];

	s->pd = 0;
	s->flags = mr->kind->flags | (mr->backing ? MR_OBJECT : 0);
	s->access = IBV_ACCESS_REMOTE_READ | (writable ? IBV_ACCESS_REMOTE_WRITE : 0);
	s->addr = s->iova = mr->addr;
	s->length = mr->length;
	if (!mr->backing) {
		s->sink = 0;
		s->inv_qpn = s->inv_pos = 0;
	}
	atomic_store_explicit(&s->key, mr->born, memory_order_release);
	atomic_fetch_add_explicit(&proc_seg()->hdr.n_exports, 1, memory_order_relaxed);
}

void export_free(struct hca_mr *mr)
{
	atomic_fetch_sub_explicit(&proc_seg()->hdr.n_exports, 1, memory_order_relaxed);
	proc_seg()->mr[mr->index].flags = 0;
	table_del_mr(mr->index);
	free(mr);
}

static int enter(uint64_t addr, uint64_t length, bool writable, struct hca_mr **out)
{
	struct hca_mr *mr;
	int rc = mr_new(&mr);

	if (rc)
		return rc;
	mr->kind = &mr_export;
	mr->addr = mr->iova = addr;
	mr->length = length;
	mr->access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	if (writable)
		mr->access |= IBV_ACCESS_REMOTE_WRITE;
	mr->born = mr_next_key(mr->index);
	if (!mr->born) /* which means none */
		mr->born = mr_next_key(mr->index);
	mr->key = ~mr->born; /* which leads to another entry: no request means this one */
	*out = mr;
	return 0;
}

int hca_export(
	void *at, uint64_t length, bool writable, struct export_handle *handle, struct hca_mr **out)
{
	uint64_t addr = (uintptr_t)at, page = PAGE_BYTES - 1, ino;
	enum share_reason why;
	struct hca_mr *mr;
	int rc;

	if (!length || (addr | length) & page || addr + length < addr)
		return -EINVAL;
	rc = proc_attach(NULL);
	rdv_check(); /* who maps it asks weftd for us, and perhaps for a file of ours */
	if (!rc)
		rc = mapped_check(addr, length, false);
	if (!rc)
		rc = arena_inode(&ino);
	if (!rc)
		rc = enter(addr, length, writable, &mr);
	if (rc)
		return rc;
	why = share_export(mr);
	if (why != SHARE_MAPPED) {
		rc = refuse(mr, why);
		table_del_mr(mr->index);
		free(mr);
		return rc;
	}
	publish(mr, writable);
	*handle = (struct export_handle){.magic = EXPORT_MAGIC,
		.attach = proc_at()->attach_id,
		.key = mr->born,
		.arena = ino,
		.length = length};
	*out = mr;
	return 0;
}

int hca_unexport(struct hca_mr *mr, bool revoke)
{
	if (mr->epoch != proc_epoch()) {
		/* Of the process that we were forked from, whose it stays. */
		free(mr);
		return 0;
	}
	atomic_store_explicit(&proc_seg()->mr[mr->index].key, 0, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	return share_unexport(mr, revoke) ? 0 : -EBUSY;
}
