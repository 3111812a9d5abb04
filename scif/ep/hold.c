// SPDX-License-Identifier: BSD-3-Clause
#include "scif/ep/hold.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "scif.h"
#include "scif/ep/share.h"

static _Atomic uint32_t forks;

/* What of the pages may be asked for. */
static int rights(const struct hold *h)
{
	return PROT_READ | (h->prot & SCIF_PROT_WRITE ? PROT_WRITE : 0);
}

int hold_export(struct hold *h, struct ibv_context *verbs)
{
	int err = errno, ret;

	if (h->share || h->imported)
		return 0;
	if (!share_calls())
		return -EOPNOTSUPP;
	h->share = share_calls()->export(verbs, h->at, h->len, rights(h), &h->handle);
	ret = h->share ? 0 : -errno;
	errno = err;
	if (ret && ret != -EFAULT)
		log_line(LOG_LVL_INFO, "SCIF: the pages at %p cannot be mapped by a peer: %s",
			h->addr, strerror(-ret));
	return ret;
}

/*
 * A second mapping of what is shared memory anyway, which is exported when a peer asks for it; else
 * of what is exported now.  at is addr if there is none.
 */
static int map_again(struct hold *h, struct ibv_context *verbs)
{
	const struct share_calls *calls = share_calls();
	uint8_t *at = calls && calls->second ? calls->second(verbs, h->addr, h->len) : NULL;
	int ret;

	h->shared = at;
	if (!at) {
		ret = hold_export(h, verbs);
		if (ret == -EFAULT)
			return ret;
	}
	if (h->share)
		at = calls->map(verbs, &h->handle, 0, h->len, rights(h), 0, NULL);
	if (at)
		h->at = at;
	return 0;
}

int hold_new(struct ibv_context *verbs, uint8_t *addr, size_t len, int prot, struct hold **out)
{
	struct hold *h = malloc(sizeof(*h));
	int err = errno, ret;

	if (!h)
		return -ENOMEM;
	*h = (struct hold){.refs = 1,
		.forks = atomic_load_explicit(&forks, memory_order_relaxed),
		.addr = addr,
		.at = addr,
		.len = len,
		.prot = prot};
	ret = map_again(h, verbs);
	if (ret) {
		free(h);
		return ret;
	}
	if (!hold_kept(h)) {
		log_line(LOG_LVL_INFO,
			"SCIF: the pages at %p are not held: they must stay mapped while they are "
			"registered",
			addr);
	}
	errno = err;
	*out = h;
	return 0;
}

/* Some device, which stays open; NULL and why. */
static struct ibv_context *any_device(int *ret)
{
	struct ibv_context **devices = rdma_get_devices(NULL), *first = devices ? devices[0] : NULL;

	*ret = first ? 0 : devices || !errno ? -ENODEV : -errno;
	if (devices)
		rdma_free_devices(devices);
	return first;
}

int hold_by_any(void *addr, size_t len, int prot, struct hold **out)
{
	int err = errno, ret;
	struct ibv_context *verbs = any_device(&ret);

	if (verbs)
		ret = hold_new(verbs, addr, len, prot, out);
	errno = err;
	return ret;
}

int hold_export_by_any(struct hold *h)
{
	int err = errno, ret;
	struct ibv_context *verbs = any_device(&ret);

	if (verbs)
		ret = hold_export(h, verbs);
	errno = err;
	return ret;
}

int hold_import(struct ibv_context *verbs, const struct weft_share_handle *handle, size_t len,
	int prot, struct hold **out)
{
	struct hold *h = calloc(1, sizeof(*h));
	int err = errno;

	if (!h)
		return -ENOMEM;
	h->refs = 1;
	h->forks = atomic_load_explicit(&forks, memory_order_relaxed);
	h->len = len;
	h->prot = prot;
	h->imported = true;
	h->handle = *handle;
	h->at = share_calls() ? share_calls()->map(verbs, handle, 0, len, rights(h), 0, NULL)
			      : NULL;
	errno = err;
	if (!h->at) {
		free(h);
		return -EOPNOTSUPP;
	}
	*out = h;
	return 0;
}

bool hold_ours(const struct hold *h)
{
	return h->forks == atomic_load_explicit(&forks, memory_order_relaxed);
}

void hold_get(struct hold *h)
{
	atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
}

void hold_put(struct hold *h)
{
	int err = errno;

	if (!h || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) > 1)
		return;
	if (hold_ours(h) && hold_kept(h) && h->shared)
		munmap(h->at, h->len);
	else if (hold_ours(h) && hold_kept(h))
		share_calls()->unmap(h->at, h->len);
	if (h->share)
		share_calls()->close(h->share);
	free(h);
	errno = err;
}

void hold_forked(void)
{
	atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}
