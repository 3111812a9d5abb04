// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/own_bytes.h"

#include <errno.h>

#include "hca/obj/mr.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"

static bool covers(const struct hca_mr *mr, uint64_t addr, uint64_t n)
{
	return addr >= mr->addr && addr - mr->addr <= mr->length &&
	       n <= mr->length - (addr - mr->addr);
}

int own_read(struct hca_mr *mr, uint64_t addr, void *to, uint64_t n)
{
	return covers(mr, addr, n) ? mr->kind->io->read(mr, addr - mr->addr, to, n) : -ERANGE;
}

int own_write(struct hca_mr *mr, uint64_t addr, const void *from, uint64_t n)
{
	const struct mr_io *io = mr->kind->io;
	int rc = covers(mr, addr, n) ? io->write(mr, addr - mr->addr, from, n) : -ERANGE;

	return rc || !io->settle ? rc : io->settle(mr);
}

int own_update(struct hca_mr *mr, uint64_t addr, bool add, uint64_t a, uint64_t b, uint64_t *old)
{
	const struct mr_io *io = mr->kind->io;
	uint64_t after;
	int rc;

	if (!covers(mr, addr, sizeof *old))
		return -ERANGE;
	if (io->update)
		return io->update(mr, addr - mr->addr, add, a, b, old);
	rc = own_read(mr, addr, old, sizeof *old);
	after = add ? *old + a : b;
	if (rc || (!add && *old != a))
		return rc;
	return own_write(mr, addr, &after, sizeof after);
}

/* ---- by key ---- */

/* The key is looked at first: while it stands, whoever deregisters waits for our exec slot. */
static struct hca_mr *region_of(uint32_t key)
{
	struct seg_mr *s = seg_mr_of(proc_seg(), key);
	struct hca_mr *mr;

	if (!key || atomic_load_explicit(&s->key, memory_order_acquire) != key)
		return NULL;
	mr = table_mr(key_index(key));
	return mr && mr->key == key && mr->kind->io ? mr : NULL;
}

static int read_of(uint32_t key, uint64_t addr, void *to, uint64_t n)
{
	struct hca_mr *mr = region_of(key);

	return mr ? own_read(mr, addr, to, n) : -ENOENT;
}

static int write_of(uint32_t key, uint64_t addr, const void *from, uint64_t n)
{
	struct hca_mr *mr = region_of(key);

	return mr ? own_write(mr, addr, from, n) : -ENOENT;
}

static int update_of(uint32_t key, uint64_t addr, bool add, uint64_t a, uint64_t b, uint64_t *old)
{
	struct hca_mr *mr = region_of(key);

	return mr ? own_update(mr, addr, add, a, b, old) : -ENOENT;
}

static bool anywhere_of(uint32_t key)
{
	struct hca_mr *mr = region_of(key);

	return !mr || (mr->kind->io->anywhere && mr->kind->io->anywhere(mr));
}

const struct owned_calls own_bytes = {
	.read = read_of, .write = write_of, .update = update_of, .anywhere = anywhere_of};
