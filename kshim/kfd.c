// SPDX-License-Identifier: BSD-3-Clause
/* AMD's interface over the store: a pin gives a scatter table with bus addresses. */
#define AMD_RDMA_MAJOR 2
#include <amd_rdma.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kshim/devices.h"
#include "kshim/hook.h"
#include "kshim/slab.h"
#include "kshim/store.h"

struct pin {
	struct pin *next;
	struct amd_p2p_info *info; /* what the client has */
	uint64_t *bus;
	unsigned pages;
	void (*told)(void *priv);
	void *priv;
	bool going;
};

static struct {
	pthread_mutex_t lock;
	struct pin *pins;
	long count;
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what a client gets ---- */

static void free_info(struct amd_p2p_info *info)
{
	if (info && info->pages)
		slab_quiet_free(info->pages->sgl);
	if (info)
		slab_quiet_free(info->pages);
	slab_quiet_free(info);
}

static struct amd_p2p_info *new_info(const uint64_t *bus, unsigned n)
{
	struct amd_p2p_info *info = slab_quiet_alloc(sizeof *info);
	struct sg_table *t = slab_quiet_alloc(sizeof *t);
	struct scatterlist *sg = slab_quiet_alloc(n * sizeof *sg);

	if (!info || !t || !sg) {
		slab_quiet_free(info);
		slab_quiet_free(t);
		slab_quiet_free(sg);
		return NULL;
	}
	for (unsigned i = 0; i < n; i++) {
		sg[i].dma_address = bus[i];
		sg[i].dma_length = sg[i].length = STORE_PAGE;
	}
	sg_mark_end(&sg[n - 1]);
	*t = (struct sg_table){.sgl = sg, .nents = n, .orig_nents = n};
	info->pages = t;
	return info;
}

/* ---- pins, with the lock held ---- */

static struct pin *pin_of(const struct amd_p2p_info *info)
{
	struct pin *p = gpu.pins;

	while (p && p->info != info)
		p = p->next;
	return info ? p : NULL;
}

static void remove_pin(struct pin *p)
{
	struct pin **at = &gpu.pins;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	gpu.count--;
	store_drop(p->bus, p->pages);
	free_info(p->info);
	free(p->bus);
	free(p);
}

/* ---- pinning ---- */

static int fill(struct pin *p, uint64_t address, uint64_t length)
{
	int rc;

	p->pages = (unsigned)(length / STORE_PAGE);
	p->bus = calloc(p->pages + 1, sizeof *p->bus);
	if (!p->bus)
		return -ENOMEM;
	rc = store_hold(address, length, p->bus);
	if (rc)
		return rc;
	p->info = new_info(p->bus, p->pages);
	if (p->info)
		return 0;
	store_drop(p->bus, p->pages);
	return -ENOMEM;
}

static int pin(struct pin *p, uint64_t address, uint64_t length, struct pid *pid)
{
	const uint64_t from = address & ~(uint64_t)(STORE_PAGE - 1);
	const uint64_t to = (address + length + STORE_PAGE - 1) & ~(uint64_t)(STORE_PAGE - 1);
	int rc = length && to > from ? fill(p, from, to - from) : -EINVAL;

	if (rc)
		return rc;
	p->info->va = address;
	p->info->size = length;
	p->info->pid = pid;
	pthread_mutex_lock(&gpu.lock);
	p->next = gpu.pins;
	gpu.pins = p;
	gpu.count++;
	pthread_mutex_unlock(&gpu.lock);
	return 0;
}

static int get_pages(uint64_t address, uint64_t length, struct pid *pid, struct device *dma_dev,
	struct amd_p2p_info **amd_p2p_data, void (*free_callback)(void *client_priv),
	void *client_priv)
{
	struct pin *p = calloc(1, sizeof *p);
	int rc = -EIO;

	(void)dma_dev;
	if (!hook_before("rdma get_pages") && p) {
		p->told = free_callback;
		p->priv = client_priv;
		rc = pin(p, address, length, pid);
	}
	if (!rc) {
		*amd_p2p_data = p->info;
	} else if (p) {
		free(p->bus);
		free(p);
	}
	return hook_after("rdma get_pages", rc);
}

static int get_pages_v1(uint64_t address, uint64_t length, struct pid *pid,
	struct amd_p2p_info **amd_p2p_data, void (*free_callback)(void *client_priv),
	void *client_priv)
{
	return get_pages(address, length, pid, NULL, amd_p2p_data, free_callback, client_priv);
}

static int put_pages(struct amd_p2p_info **amd_p2p_data)
{
	struct pin *p;
	int rc = 0;

	hook_enter("rdma put_pages");
	pthread_mutex_lock(&gpu.lock);
	p = pin_of(*amd_p2p_data);
	if (!p)
		rc = -EINVAL;
	else if (p->going)
		rc = -EBUSY;
	else
		remove_pin(p);
	pthread_mutex_unlock(&gpu.lock);
	if (rc == -EINVAL)
		hook_wrong(KSHIM_STALE, "rdma put_pages of what is not pinned");
	else if (!rc)
		*amd_p2p_data = NULL;
	return hook_after("rdma put_pages", rc);
}

static int is_gpu_address(uint64_t address, struct pid *pid)
{
	(void)pid;
	return store_has(address, 1);
}

static int get_page_size(
	uint64_t address, uint64_t length, struct pid *pid, unsigned long *page_size)
{
	int rc = -EIO;

	(void)pid;
	if (!hook_before("rdma get_page_size"))
		rc = store_has(address, length) ? 0 : -EINVAL;
	if (!rc)
		*page_size = STORE_PAGE;
	return hook_after("rdma get_page_size", rc);
}

static const struct amd_rdma_interface interface = {
	get_pages, put_pages, is_gpu_address, get_page_size};

KSHIM_EXPORT int amdkfd_query_rdma_interface(const struct amd_rdma_interface **rdma)
{
	*rdma = &interface;
	return 0;
}

/* As struct amd_rdma_interface of version 1. */
struct interface_v1 {
	int (*get_pages)(uint64_t address, uint64_t length, struct pid *pid,
		struct amd_p2p_info **amd_p2p_data, void (*free_callback)(void *client_priv),
		void *client_priv);
	int (*put_pages)(struct amd_p2p_info **amd_p2p_data);
	int (*is_gpu_address)(uint64_t address, struct pid *pid);
	int (*get_page_size)(
		uint64_t address, uint64_t length, struct pid *pid, unsigned long *page_size);
};

KSHIM_EXPORT int amdkfd_query_rdma_interface_v1(const struct interface_v1 **rdma);
KSHIM_EXPORT int amdkfd_query_rdma_interface_v1(const struct interface_v1 **rdma)
{
	static const struct interface_v1 v1 = {
		get_pages_v1, put_pages, is_gpu_address, get_page_size};

	*rdma = &v1;
	return 0;
}

/* ---- the device ---- */

static struct pin *next_to_tell(uint64_t addr, uint64_t n)
{
	struct pin *p = gpu.pins;

	while (p && (p->going || p->info->va >= addr + n || p->info->va + p->info->size <= addr))
		p = p->next;
	return p;
}

static int gpu_free(uint64_t addr)
{
	const uint64_t n = store_size(addr);
	struct pin *p;

	if (!n)
		return -EINVAL;
	pthread_mutex_lock(&gpu.lock);
	while ((p = next_to_tell(addr, n))) {
		p->going = true;
		pthread_mutex_unlock(&gpu.lock);
		hook_enter("free_callback");
		if (p->told)
			p->told(p->priv);
		hook_after("free_callback", 0);
		pthread_mutex_lock(&gpu.lock);
		remove_pin(p);
	}
	pthread_mutex_unlock(&gpu.lock);
	return store_free(addr);
}

static long pinned(void)
{
	long n;

	pthread_mutex_lock(&gpu.lock);
	n = gpu.count;
	pthread_mutex_unlock(&gpu.lock);
	return n;
}

const struct weft_peer_device kfd_device = {
	.size = sizeof kfd_device,
	.name = "kfd",
	.alloc = store_alloc,
	.free = gpu_free,
	.write = store_write,
	.read = store_read,
	.pinned = pinned,
	.fail_nth = hook_fail_nth,
};
