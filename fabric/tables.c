// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* SL n to VL n mod 8. */
#define DEFAULT_SL2VL 0x0123456701234567ull

enum { DEFAULT_PKEY = 0xffff, PKEY_BITS = 0x7fff, PKEY_FULL = 0x8000 };

static uint64_t sl2vl_rows(const struct tables_shape *n)
{
	return n->kind == TABLES_SWITCH ? (n->n_ports + 1) * (n->n_ports + 1) : n->n_ports;
}

/* How many of each array's entries come before node n. */
struct sums {
	uint64_t ports, sl2vl, lft, mft;
};

static void add(struct sums *sum, const struct tables_shape *n)
{
	bool sw = n->kind == TABLES_SWITCH;

	sum->ports += n->n_ports + sw;
	sum->sl2vl += sl2vl_rows(n);
	sum->lft += sw ? TABLES_LIDS : 0;
	sum->mft += sw ? TABLES_MLIDS * tables_positions(n->n_ports) : 0;
}

static size_t take(size_t *size, uint64_t n, size_t each)
{
	size_t at = *size;

	*size += (n * each + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	return at;
}

/* Places the arrays in the mapping; how long that is. */
static size_t lay_out(struct tables *t, uint32_t n_nodes, const struct sums *sum)
{
	uintptr_t base = (uintptr_t)t->base; /* 0: not mapped yet */
	size_t size = 0;

#define PLACE(member, n) t->member = (void *)(base + take(&size, n, sizeof *t->member))
	PLACE(head, 1);
	PLACE(nodes, n_nodes);
	PLACE(ports, sum->ports);
	PLACE(pkeys, sum->ports * TABLES_PKEYS);
	PLACE(sl2vl, sum->sl2vl);
	PLACE(lft, sum->lft);
	PLACE(mft, sum->mft);
#undef PLACE
	return size;
}

static void number_ports(struct tables *t, uint32_t i, uint64_t first)
{
	struct tables_node *n = &t->nodes[i];
	bool sw = n->kind == TABLES_SWITCH;

	n->port0 = sw ? first : first - 1;
	for (unsigned p = !sw; p <= n->n_ports; p++)
		t->ports[n->port0 + p].node = i;
}

static void fill(struct tables *t, const struct tables_shape *nodes, uint32_t n)
{
	struct sums sum = {.ports = 1};

	for (uint32_t i = 0; i < n; i++) {
		struct tables_node *x = &t->nodes[i];

		x->kind = nodes[i].kind;
		x->n_ports = nodes[i].n_ports;
		x->sl2vl = sum.sl2vl;
		x->lft = sum.lft;
		x->mft = sum.mft;
		number_ports(t, i, sum.ports);
		add(&sum, &nodes[i]);
	}
	t->head->n_nodes = n;
	t->head->n_ports = sum.ports;
	t->head->n_sl2vl = sum.sl2vl;
	t->head->n_lft = sum.lft;
	t->head->n_mft = sum.mft;
}

/* A memfd that nobody can write but by the mapping of it that there is now. */
static int make_memory(struct tables *t)
{
	t->fd = memfd_create("weft-tables", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (t->fd < 0 || ftruncate(t->fd, (off_t)t->size) < 0)
		return -errno;
	t->base = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, t->fd, 0);
	if (t->base == MAP_FAILED) {
		t->base = NULL;
		return -errno;
	}
	if (fcntl(t->fd, F_ADD_SEALS,
		    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	return 0;
}

int tables_create(struct tables *t, const struct tables_shape *nodes, uint32_t n)
{
	struct sums sum = {.ports = 1};
	int ret;

	memset(t, 0, sizeof *t);
	for (uint32_t i = 0; i < n; i++)
		add(&sum, &nodes[i]);
	t->size = lay_out(t, n, &sum);
	ret = make_memory(t);
	if (ret) {
		tables_free(t);
		return ret;
	}
	(void)lay_out(t, n, &sum);
	fill(t, nodes, n);
	return 0;
}

/* Do the arrays that its head tells of fit into it? */
static bool is_whole(struct tables *t)
{
	const struct tables_head *h = t->base;
	const struct sums sum = {h->n_ports, h->n_sl2vl, h->n_lft, h->n_mft};

	return (sum.ports | sum.sl2vl | sum.lft | sum.mft) >> 40 == 0 &&
	       lay_out(t, h->n_nodes, &sum) == t->size;
}

int tables_map(struct tables *t, int fd)
{
	struct stat st;

	memset(t, 0, sizeof *t);
	t->fd = -1;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)sizeof *t->head)
		return -EINVAL;
	t->size = (size_t)st.st_size;
	t->base = mmap(NULL, t->size, PROT_READ, MAP_SHARED, fd, 0);
	if (t->base == MAP_FAILED) {
		t->base = NULL;
		return -errno;
	}
	if (is_whole(t))
		return 0;
	tables_free(t);
	return -EINVAL;
}

void tables_free(struct tables *t)
{
	if (t->base)
		munmap(t->base, t->size);
	if (t->size && t->fd >= 0)
		close(t->fd);
	memset(t, 0, sizeof *t);
}

void tables_changed(struct tables *t)
{
	atomic_fetch_add_explicit(&t->head->epoch, 1, memory_order_release);
}

uint16_t tables_pkey(const struct tables *t, uint32_t port, unsigned i)
{
	if (!tables_load(&t->ports[port].own_pkeys))
		return i ? 0 : DEFAULT_PKEY;
	return tables_load(&t->pkeys[(uint64_t)port * TABLES_PKEYS + i]);
}

void tables_set_pkey(struct tables *t, uint32_t port, unsigned i, uint16_t pkey)
{
	_Atomic uint16_t *own = &t->pkeys[(uint64_t)port * TABLES_PKEYS];

	if (tables_pkey(t, port, i) == pkey)
		return;
	if (!tables_load(&t->ports[port].own_pkeys)) {
		tables_store(&own[0], DEFAULT_PKEY);
		atomic_store_explicit(&t->ports[port].own_pkeys, 1, memory_order_release);
	}
	tables_store(&own[i], pkey);
}

/* The first entry with the same 15 bits; at an end not both may be limited.  -1. */
static int find_pkey(const struct tables *t, uint32_t port, uint16_t pkey, bool at_end)
{
	if (!(pkey & PKEY_BITS))
		return -1;
	for (unsigned i = 0; i < TABLES_PKEYS; i++) {
		uint16_t own = tables_pkey(t, port, i);

		if (!((own ^ pkey) & PKEY_BITS) && (!at_end || (own | pkey) & PKEY_FULL))
			return i;
	}
	return -1;
}

int tables_find_pkey(const struct tables *t, uint32_t port, uint16_t pkey)
{
	return find_pkey(t, port, pkey, true);
}

bool tables_lets_pkey(const struct tables *t, uint32_t port, uint16_t pkey)
{
	return find_pkey(t, port, pkey, false) >= 0;
}

static _Atomic uint64_t *sl2vl_row(const struct tables *t, uint32_t node, uint8_t in, uint8_t out)
{
	const struct tables_node *n = &t->nodes[node];
	unsigned row = n->kind == TABLES_SWITCH ? in * (n->n_ports + 1u) + out : out - 1u;

	return &t->sl2vl[n->sl2vl + row];
}

uint64_t tables_sl2vl(const struct tables *t, uint32_t node, uint8_t in, uint8_t out)
{
	if (!tables_load(&t->nodes[node].own_sl2vl))
		return DEFAULT_SL2VL;
	return tables_load(sl2vl_row(t, node, in, out));
}

static void own_sl2vl(struct tables *t, uint32_t node)
{
	struct tables_node *n = &t->nodes[node];
	struct tables_shape shape = {n->kind, n->n_ports};

	for (uint64_t i = 0; i < sl2vl_rows(&shape); i++)
		tables_store(&t->sl2vl[n->sl2vl + i], DEFAULT_SL2VL);
	atomic_store_explicit(&n->own_sl2vl, 1, memory_order_release);
}

void tables_set_sl2vl(struct tables *t, uint32_t node, uint8_t in, uint8_t out, uint64_t vls)
{
	if (tables_sl2vl(t, node, in, out) == vls)
		return;
	if (!tables_load(&t->nodes[node].own_sl2vl))
		own_sl2vl(t, node);
	tables_store(sl2vl_row(t, node, in, out), vls);
}
