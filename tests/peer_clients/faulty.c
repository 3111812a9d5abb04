// SPDX-License-Identifier: BSD-3-Clause
/*
 * The client of nv.c with one fault, chosen by WEFT_PARAM_fault: the number of one of these names,
 * each of which begins with the rule that it breaks.  peercheck_faults.py reads them from here.
 */
#include <linux/module.h>
#undef module_init
#undef module_exit
#define module_init(fn) static int (*const nv_begin)(void) __attribute__((unused)) = (fn)
#define module_exit(fn) static void (*const nv_end)(void) __attribute__((unused)) = (fn)
#include <linux/delay.h>
#include <nv-p2p.h>

enum fault {
	NONE,
	P1_NAME,
	P1_VERSION,
	P1_MISSING,
	P1_CHANGED,
	P1_TWICE,
	P2_STAYS,
	P2_AGAIN,
	P2_UNKNOWN,
	P3_BEHIND,
	P3_HEAP,
	P3_TOP,
	P3_ANSWER,
	P4_OBJECT,
	P4_MODULE,
	P5_POSITIVE,
	P5_LEAVES,
	P5_READING,
	P5_FORCED,
	P6_TABLE,
	P6_REFUSES,
	P7_NMAP,
	P7_ALIGN,
	P7_OVERLAP,
	P7_EMPTY,
	P7_FOREIGN,
	P7_NOWHERE,
	P8_SHORT,
	P8_EDGE,
	P9_SWAPPED,
	P9_REPEATED,
	P9_READING,
	P10_ODD,
	P10_CHANGES,
	P10_ZERO,
	P11_EARLY,
	P11_LATER,
	P12_ANSWER,
	P12_PIN,
	P12_OBJECT,
	P12_READING,
	P12_MODULE,
	P13_PUTS,
	P13_FREES,
	P14_UNCHECKED,
	P14_IGNORED,
	P15_HANDLE,
	P15_STALE,
	P16_NEVER,
	P16_TWICE,
	P17_STAYS,
	P17_TWICE,
	P18_LOCK,
	P19_LATE,
	P19_HANGS,
	P20_GOES,
	P21_STATIC,
	P21_BUSY,
	P22_AFTER,
	P22_BEYOND,
	P22_FILLER,
	P22_LEAK,
	P22_TOUCH,
	P22_OVERFLOW, /* UndefinedBehaviorSanitizer alone sees it */
};

static int fault;
module_param(fault, int, 0);

/* Takes the place of the driver's in nv.c. */
static int faulty_free_page_table(struct nvidia_p2p_page_table *table)
{
	if (fault == P17_STAYS)
		return 0;
	if (fault == P17_TWICE)
		nvidia_p2p_free_page_table(table);
	return nvidia_p2p_free_page_table(table);
}

#define nvidia_p2p_free_page_table faulty_free_page_table
#include "nv.c"
#undef nvidia_p2p_free_page_table

static invalidate_peer_memory real_invalidate;
static DEFINE_MUTEX(big_lock);
static struct nv_region *latest;
static core_context_t released;
static bool is_released, busy, only_read;
static size_t asked;
static char foreign[64 * 65536] __attribute__((aligned(65536)));

/* ---- invalidating ---- */

static int faulty_invalidate(void *reg_handle, core_context_t core)
{
	int rc = 0;

	if (fault == P16_NEVER || fault == P20_GOES)
		return 0;
	if (fault == P15_HANDLE)
		return real_invalidate((char *)reg_handle + 8, core);
	if (fault == P15_STALE && is_released)
		return real_invalidate(reg_handle, released);
	if (fault == P18_LOCK)
		mutex_lock(&big_lock);
	rc = real_invalidate(reg_handle, core);
	if (fault == P18_LOCK)
		mutex_unlock(&big_lock);
	return fault == P16_TWICE ? real_invalidate(reg_handle, core) : rc;
}

/* ---- acquire ---- */

static int claim_anyway(size_t size, void **context)
{
	struct nv_region *r = kzalloc(sizeof *r, GFP_KERNEL);

	if (!r)
		return 0;
	kref_init(&r->refs);
	mutex_init(&r->lock);
	r->length = size;
	__module_get(THIS_MODULE);
	*context = r;
	return 1;
}

static int not_ours(unsigned long addr, size_t size, void **context)
{
	switch (fault) {
	case P3_BEHIND:
		return size > 1 && size < 1UL << 40
			       ? nv_acquire(addr, size - 1, NULL, NULL, context)
			       : 0;
	case P3_HEAP:
		return claim_anyway(size, context);
	case P3_TOP:
		return addr > ULONG_MAX / 2 ? claim_anyway(size, context) : 0;
	case P3_ANSWER:
		return -EFAULT;
	case P4_OBJECT:
		return !kmalloc(16, GFP_KERNEL) && 0;
	case P4_MODULE:
		__module_get(THIS_MODULE);
		return 0;
	default:
		return 0;
	}
}

static int faulty_acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **client_context)
{
	if (fault == P1_CHANGED)
		client->name[0]++;
	if (fault == P21_BUSY && busy)
		return 0;
	if (!nv_acquire(addr, size, private_data, peer_name, client_context))
		return not_ours(addr, size, client_context);
	latest = *client_context;
	busy = true;
	return 1;
}

/* ---- get_pages ---- */

static int with_more_memory(int rc)
{
	void *p = rc ? NULL : kmalloc(8, GFP_KERNEL);

	if (!rc && !p)
		return -ENOMEM; /* and the pages stay pinned */
	kfree(p);
	return rc;
}

static int faulty_get_pages(unsigned long addr, size_t size, int write, int force,
	struct sg_table *sg_head, void *client_context, core_context_t core_context)
{
	struct nv_region *r = client_context;
	int rc;

	only_read = force;
	asked = size;
	if (fault == P5_POSITIVE)
		return EINVAL;
	if (fault == P6_REFUSES)
		return -EINVAL;
	if ((fault == P5_READING && !write) || (fault == P5_FORCED && force))
		return -EACCES;
	if (fault == P6_TABLE)
		sg_head->nents = 0;
	if (fault == P18_LOCK) {
		mutex_lock(&big_lock);
		mutex_unlock(&big_lock);
	}
	rc = nv_get_pages(addr, size, write, force, sg_head, client_context, core_context);
	if (fault == P5_LEAVES)
		rc = with_more_memory(rc);
	if (fault == P13_FREES && rc)
		kref_put(&r->refs, free_region);
	return rc;
}

/* ---- dma_map ---- */

static void spoil_entries(struct nv_region *r, int *nmap)
{
	struct scatterlist *e = r->entries;
	const u64 first = e[0].dma_address;

	for (int i = 0; fault == P7_FOREIGN && i < *nmap; i++)
		e[i].dma_address = (u64)(unsigned long)&foreign[i * GPU_PAGE];
	if (fault == P7_ALIGN)
		e[0].dma_address += 512;
	if (fault == P7_EMPTY)
		e[*nmap - 1].dma_length = 0;
	if (fault == P7_NOWHERE)
		e[0].dma_address = 65536;
	if (fault == P7_NMAP)
		++*nmap;
	if (*nmap < 2)
		return;
	if (fault == P7_OVERLAP)
		e[1].dma_address = first + 4096;
	if (fault == P8_SHORT || (fault == P8_EDGE && asked <= (*nmap - 1) * GPU_PAGE))
		--*nmap;
	if (fault == P9_SWAPPED || (fault == P9_READING && only_read)) {
		e[0].dma_address = e[1].dma_address;
		e[1].dma_address = first;
	}
	for (int i = 0; fault == P9_REPEATED && i + 1 < *nmap; i++) {
		e[i].dma_address = e[i + 1].dma_address;
		e[i + 1].dma_address = first;
	}
}

static void misuse_memory(struct nv_region *r, int nmap)
{
	volatile char *p;

	if (fault == P22_BEYOND)
		((volatile char *)r->entries)[(unsigned)nmap * sizeof *r->entries] = 1;
	if (fault == P22_TOUCH)
		(void)*(volatile char *)r->start;
	if (fault == P11_EARLY)
		kfree(r->entries);
	if (fault != P14_UNCHECKED && fault != P22_FILLER)
		return;
	p = kmalloc(13, GFP_KERNEL);
	p[fault == P22_FILLER ? 13 : 0] = 1;
	kfree((void *)p);
}

static int faulty_dma_map(struct sg_table *sg_head, void *client_context, struct device *dma_device,
	int dmasync, int *nmap)
{
	struct nv_region *r = fault == P21_STATIC ? latest : client_context;
	struct nvidia_p2p_page_table *table = r->table;
	volatile int big = INT_MAX;
	int rc = nv_dma_map(sg_head, r, dma_device, dmasync, nmap);

	busy = false;
	if (fault == P22_OVERFLOW)
		big += fault;
	if (rc && fault == P13_PUTS) {
		nv_put_pages(sg_head, r);
		r->table = table;
	}
	if (rc && fault == P14_IGNORED)
		return 0;
	if (rc)
		return rc;
	spoil_entries(r, nmap);
	misuse_memory(r, *nmap);
	return 0;
}

/* ---- the others ---- */

static int faulty_dma_unmap(
	struct sg_table *sg_head, void *client_context, struct device *dma_device)
{
	int rc = nv_dma_unmap(sg_head, client_context, dma_device);

	return fault == P12_ANSWER ? -EIO : rc;
}

static void faulty_put_pages(struct sg_table *sg_head, void *client_context)
{
	if (fault != P12_PIN)
		nv_put_pages(sg_head, client_context);
}

static unsigned long faulty_get_page_size(void *client_context)
{
	static unsigned int times;
	struct nv_region *r = client_context;

	if (fault == P11_LATER) {
		kfree(r->entries);
		r->entries = NULL;
	}
	if (fault == P10_CHANGES && times++ % 2)
		return 4096;
	if (fault == P10_ODD)
		return GPU_PAGE + 4096;
	return fault == P10_ZERO ? 0 : nv_get_page_size(client_context);
}

static void faulty_release(void *client_context)
{
	struct nv_region *r = client_context;

	released = r->core;
	is_released = true;
	if (fault == P12_OBJECT || (fault == P12_READING && only_read))
		kref_get(&r->refs);
	if (fault == P12_MODULE)
		__module_get(THIS_MODULE);
	if (fault == P19_LATE)
		kref_init(&r->refs); /* whoever else counts on it */
	while (fault == P19_HANGS && atomic_read(&r->refs.refcount) > 1)
		usleep_range(1000, 1000);
	nv_release(client_context);
	if (fault == P22_AFTER)
		WRITE_ONCE(r->length, 0);
}

/* ---- the module ---- */

static void spoil_client(void)
{
	if (fault == P1_NAME)
		memset(client->name, 'x', sizeof client->name);
	if (fault == P1_VERSION)
		memset(client->version, '1', sizeof client->version);
	if (fault == P1_MISSING)
		client->dma_unmap = NULL;
	if (fault == P22_LEAK)
		(void)!kmalloc(24, GFP_KERNEL);
}

static int __init faulty_init(void)
{
	client->acquire = faulty_acquire;
	client->get_pages = faulty_get_pages;
	client->dma_map = faulty_dma_map;
	client->dma_unmap = faulty_dma_unmap;
	client->put_pages = faulty_put_pages;
	client->get_page_size = faulty_get_page_size;
	client->release = faulty_release;
	spoil_client();
	handle =
		ib_register_peer_memory_client(client, fault == P20_GOES ? NULL : &real_invalidate);
	invalidate = faulty_invalidate;
	if (fault == P1_TWICE)
		ib_register_peer_memory_client(client, &real_invalidate);
	return handle ? 0 : -EINVAL;
}

static void __exit faulty_exit(void)
{
	if (fault != P2_STAYS)
		ib_unregister_peer_memory_client(handle);
	if (fault == P2_AGAIN)
		ib_unregister_peer_memory_client(handle);
	if (fault == P2_UNKNOWN)
		ib_unregister_peer_memory_client(foreign);
}

int init_module(void);
int init_module(void)
{
	return faulty_init();
}

void cleanup_module(void);
void cleanup_module(void)
{
	faulty_exit();
}
