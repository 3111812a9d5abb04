// SPDX-License-Identifier: BSD-3-Clause
/*
 * NVIDIA's interface over the store.  A pin is what nvidia_p2p_get_pages() gave; when the memory
 * goes, its client is told, with no lock held, and then it is gone, as in present drivers, or the
 * client frees it, as in old ones.
 */
#include "kshim/nvidia.h"

#include <errno.h>
#include <linux/pci.h>
#include <nv-p2p.h>
#include <pthread.h>
#include <stdlib.h>

#include "kshim/devices.h"
#include "kshim/hook.h"
#include "kshim/slab.h"
#include "kshim/store.h"

enum pin_state { PIN_HELD, PIN_GOING, PIN_GONE };

struct pin {
	struct pin *next;
	struct nvidia_p2p_page_table *table;
	struct nvidia_p2p_dma_mapping *mapping;
	uint64_t addr, length, *bus;
	void (*told)(void *data);
	void *data;
	enum pin_state state;
};

static struct {
	pthread_mutex_t lock;
	struct pin *pins;
	bool old_freeing;
	long things; /* tables and mappings that a client has */
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

KSHIM_EXPORT const int nvidia_p2p_cap_persistent_pages = NVIDIA_P2P_CAP_PERSISTENT_PAGES;

void nvidia_old_freeing(bool old)
{
	gpu.old_freeing = old;
}

/* ---- tables ---- */

static void free_table(struct nvidia_p2p_page_table *t)
{
	if (t && t->pages)
		slab_quiet_free(t->pages[0]);
	if (t)
		slab_quiet_free(t->pages);
	slab_quiet_free(t);
}

static struct nvidia_p2p_page_table *new_table(const uint64_t *bus, uint32_t n)
{
	struct nvidia_p2p_page_table *t = slab_quiet_alloc(sizeof *t);
	struct nvidia_p2p_page *page = slab_quiet_alloc(n * sizeof *page);
	struct nvidia_p2p_page **pages = slab_quiet_alloc(n * sizeof(void *));

	if (!t || !page || !pages) {
		slab_quiet_free(t);
		slab_quiet_free(page);
		slab_quiet_free(pages);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		page[i].physical_address = bus[i];
		pages[i] = &page[i];
	}
	*t = (struct nvidia_p2p_page_table){.version = NVIDIA_P2P_PAGE_TABLE_VERSION,
		.page_size = NVIDIA_P2P_PAGE_SIZE_64KB,
		.pages = pages,
		.entries = n};
	return t;
}

static void free_mapping(struct nvidia_p2p_dma_mapping *m)
{
	if (m)
		slab_quiet_free(m->dma_addresses);
	slab_quiet_free(m);
}

static struct nvidia_p2p_dma_mapping *new_mapping(const struct pin *p, struct pci_dev *peer)
{
	const uint32_t n = p->table->entries;
	struct nvidia_p2p_dma_mapping *m = slab_quiet_alloc(sizeof *m);
	uint64_t *addresses = slab_quiet_alloc(n * sizeof *addresses);

	if (!m || !addresses) {
		slab_quiet_free(m);
		slab_quiet_free(addresses);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		addresses[i] = p->bus[i];
	*m = (struct nvidia_p2p_dma_mapping){.version = NVIDIA_P2P_DMA_MAPPING_VERSION,
		.page_size_type = NVIDIA_P2P_PAGE_SIZE_64KB,
		.entries = n,
		.dma_addresses = addresses,
		.pci_dev = peer};
	return m;
}

/* ---- pins, with the lock held ---- */

static struct pin *pin_of_table(const struct nvidia_p2p_page_table *t)
{
	struct pin *p = gpu.pins;

	while (p && p->table != t)
		p = p->next;
	return t ? p : NULL;
}

static struct pin *pin_of_mapping(const struct nvidia_p2p_dma_mapping *m)
{
	struct pin *p = gpu.pins;

	while (p && p->mapping != m)
		p = p->next;
	return m ? p : NULL;
}

static void drop_mapping(struct pin *p)
{
	if (p->mapping)
		gpu.things--;
	free_mapping(p->mapping);
	p->mapping = NULL;
}

static void drop_table(struct pin *p)
{
	if (p->table)
		gpu.things--;
	free_table(p->table);
	p->table = NULL;
}

/* Nothing of it is left; it may have been told of meanwhile. */
static void remove_pin(struct pin *p)
{
	struct pin **at = &gpu.pins;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	drop_mapping(p);
	drop_table(p);
	store_drop(p->bus, (unsigned)(p->length / STORE_PAGE));
	free(p->bus);
	free(p);
}

static void add_pin(struct pin *p)
{
	pthread_mutex_lock(&gpu.lock);
	p->next = gpu.pins;
	gpu.pins = p;
	gpu.things++;
	pthread_mutex_unlock(&gpu.lock);
}

/* ---- pinning ---- */

static int fill_pin(struct pin *p)
{
	const unsigned pages = (unsigned)(p->length / STORE_PAGE);
	int rc;

	p->bus = calloc(pages ? pages : 1, sizeof *p->bus);
	if (!p->bus)
		return -ENOMEM;
	rc = pages ? store_hold(p->addr, p->length, p->bus) : -EINVAL;
	if (rc)
		return rc;
	p->table = new_table(p->bus, pages);
	if (p->table)
		return 0;
	store_drop(p->bus, pages);
	return -ENOMEM;
}

static int pin(const struct pin *like, struct nvidia_p2p_page_table **table)
{
	struct pin *p = malloc(sizeof *p);
	int rc;

	if (!p)
		return -ENOMEM;
	*p = *like;
	rc = fill_pin(p);
	if (rc) {
		free(p->bus);
		free(p);
		return rc;
	}
	*table = p->table;
	add_pin(p);
	return 0;
}

KSHIM_EXPORT int nvidia_p2p_get_pages(uint64_t p2p_token, uint32_t va_space,
	uint64_t virtual_address, uint64_t length, struct nvidia_p2p_page_table **page_table,
	void (*free_callback)(void *data), void *data)
{
	const struct pin like = {
		.addr = virtual_address, .length = length, .told = free_callback, .data = data};
	int rc = -EIO;

	(void)p2p_token;
	(void)va_space;
	if (!hook_before("nvidia_p2p_get_pages"))
		rc = pin(&like, page_table);
	return hook_after("nvidia_p2p_get_pages", rc);
}

KSHIM_EXPORT int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
	struct nvidia_p2p_page_table **page_table, uint32_t flags)
{
	const struct pin like = {.addr = virtual_address, .length = length};
	int rc = -EIO;

	if (!hook_before("nvidia_p2p_get_pages_persistent"))
		rc = flags ? -EINVAL : pin(&like, page_table);
	return hook_after("nvidia_p2p_get_pages_persistent", rc);
}

/* ---- unpinning ---- */

/* A client may lose a race with its callback, but not hold what is gone. */
static int put(uint64_t addr, const struct nvidia_p2p_page_table *table)
{
	struct pin *p;
	int rc = 0;

	pthread_mutex_lock(&gpu.lock);
	p = pin_of_table(table);
	if (!p || p->addr != addr)
		rc = -EINVAL;
	else if (p->state != PIN_HELD)
		rc = -EAGAIN;
	else
		remove_pin(p);
	pthread_mutex_unlock(&gpu.lock);
	if (rc == -EINVAL)
		hook_wrong(KSHIM_STALE, "nvidia_p2p_put_pages of a table that is not pinned");
	return rc ? -EINVAL : 0;
}

KSHIM_EXPORT int nvidia_p2p_put_pages(uint64_t p2p_token, uint32_t va_space,
	uint64_t virtual_address, struct nvidia_p2p_page_table *page_table)
{
	(void)p2p_token;
	(void)va_space;
	hook_enter("nvidia_p2p_put_pages");
	return hook_after("nvidia_p2p_put_pages", put(virtual_address, page_table));
}

KSHIM_EXPORT int nvidia_p2p_put_pages_persistent(
	uint64_t virtual_address, struct nvidia_p2p_page_table *page_table, uint32_t flags)
{
	hook_enter("nvidia_p2p_put_pages_persistent");
	return hook_after("nvidia_p2p_put_pages_persistent",
		flags ? -EINVAL : put(virtual_address, page_table));
}

/* Of old drivers: what is left for the client to free once it was told. */
static int free_by_client(struct pin *p, bool table, const char *wrong)
{
	const bool is_so = p && p->state != PIN_HELD;

	if (is_so && table)
		drop_table(p);
	else if (is_so)
		drop_mapping(p);
	if (is_so && p->state == PIN_GONE && !p->table && !p->mapping)
		remove_pin(p);
	pthread_mutex_unlock(&gpu.lock);
	if (!is_so)
		hook_wrong(KSHIM_STALE, wrong);
	return is_so ? 0 : -EINVAL;
}

KSHIM_EXPORT int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	int rc = 0;

	hook_enter("nvidia_p2p_free_page_table");
	if (gpu.old_freeing) {
		pthread_mutex_lock(&gpu.lock);
		rc = free_by_client(pin_of_table(page_table), true,
			"nvidia_p2p_free_page_table of what is pinned, or free");
	}
	return hook_after("nvidia_p2p_free_page_table", rc);
}

KSHIM_EXPORT int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping)
{
	int rc = 0;

	hook_enter("nvidia_p2p_free_dma_mapping");
	if (gpu.old_freeing) {
		pthread_mutex_lock(&gpu.lock);
		rc = free_by_client(pin_of_mapping(dma_mapping), false,
			"nvidia_p2p_free_dma_mapping of what is mapped, or free");
	}
	return hook_after("nvidia_p2p_free_dma_mapping", rc);
}

/* ---- mapping ---- */

static int map(struct pci_dev *peer, const struct nvidia_p2p_page_table *table,
	struct nvidia_p2p_dma_mapping **mapping)
{
	struct pin *p;
	int rc = -EINVAL;

	pthread_mutex_lock(&gpu.lock);
	p = pin_of_table(table);
	if (p && p->state == PIN_HELD && !p->mapping && peer) {
		p->mapping = new_mapping(p, peer);
		rc = p->mapping ? 0 : -ENOMEM;
	}
	if (!rc) {
		gpu.things++;
		*mapping = p->mapping;
	}
	pthread_mutex_unlock(&gpu.lock);
	if (!p)
		hook_wrong(KSHIM_STALE, "nvidia_p2p_dma_map_pages of a table that is not pinned");
	return rc;
}

KSHIM_EXPORT int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
	struct nvidia_p2p_page_table *page_table, struct nvidia_p2p_dma_mapping **dma_mapping)
{
	int rc = -EIO;

	if (!hook_before("nvidia_p2p_dma_map_pages"))
		rc = map(peer, page_table, dma_mapping);
	return hook_after("nvidia_p2p_dma_map_pages", rc);
}

static int unmap(const struct nvidia_p2p_page_table *table, const struct nvidia_p2p_dma_mapping *m)
{
	struct pin *p;
	bool held = false;

	pthread_mutex_lock(&gpu.lock);
	p = pin_of_mapping(m);
	if (p && p->table == table) {
		held = p->state == PIN_HELD;
		if (held)
			drop_mapping(p);
	} else {
		p = NULL;
	}
	pthread_mutex_unlock(&gpu.lock);
	if (!p)
		hook_wrong(KSHIM_STALE, "nvidia_p2p_dma_unmap_pages of what is not mapped");
	return held ? 0 : -EINVAL;
}

KSHIM_EXPORT int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer,
	struct nvidia_p2p_page_table *page_table, struct nvidia_p2p_dma_mapping *dma_mapping)
{
	(void)peer;
	hook_enter("nvidia_p2p_dma_unmap_pages");
	return hook_after("nvidia_p2p_dma_unmap_pages", unmap(page_table, dma_mapping));
}

/* ---- the device ---- */

static struct pin *next_to_tell(uint64_t addr, uint64_t n)
{
	struct pin *p = gpu.pins;

	while (p && (!p->told || p->state != PIN_HELD || p->addr >= addr + n ||
			    p->addr + p->length <= addr))
		p = p->next;
	return p;
}

/* Tells the client of p; in present drivers p is gone then.  Drops the lock meanwhile. */
static void tell(struct pin *p)
{
	p->state = PIN_GOING;
	pthread_mutex_unlock(&gpu.lock);
	hook_enter("free_callback");
	p->told(p->data);
	hook_after("free_callback", 0);
	pthread_mutex_lock(&gpu.lock);
	p->state = PIN_GONE;
	if (!gpu.old_freeing || (!p->table && !p->mapping))
		remove_pin(p);
}

static int gpu_free(uint64_t addr)
{
	const uint64_t n = store_size(addr);
	struct pin *p;

	if (!n)
		return -EINVAL;
	pthread_mutex_lock(&gpu.lock);
	while ((p = next_to_tell(addr, n)))
		tell(p);
	pthread_mutex_unlock(&gpu.lock);
	return store_free(addr);
}

static long pinned(void)
{
	long n;

	pthread_mutex_lock(&gpu.lock);
	n = gpu.things;
	pthread_mutex_unlock(&gpu.lock);
	return n;
}

const struct weft_peer_device nvidia_device = {
	.size = sizeof nvidia_device,
	.name = "nvidia",
	.alloc = store_alloc,
	.free = gpu_free,
	.write = store_write,
	.read = store_read,
	.pinned = pinned,
	.fail_nth = hook_fail_nth,
};
