// SPDX-License-Identifier: BSD-3-Clause
#include "topo/generate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topo/lex.h"

enum { NUMBERS = 4 };

struct size {
	uint64_t hosts, switches, ports; /* ports: of each switch */
};

struct plan {
	struct topo_build build;
	struct size size;
	const struct shape *shape;
	unsigned v[NUMBERS]; /* of the SPEC */
	char *error;
};

struct shape {
	const char *name, *form;
	const char *between; /* what stands between its numbers, one character each */
	unsigned optional;   /* how many of the last may be left out: they are 1 */
	/* Notes what it takes; NULL, or which bound the numbers break. */
	const char *(*measure)(const unsigned v[NUMBERS], struct size *size);
	void (*wire)(struct plan *p);
	void (*describe)(const unsigned v[NUMBERS], unsigned s, char *text, size_t size);
};

/* Wires host h to a switch's port. */
static void host(struct plan *p, unsigned h, unsigned s, unsigned port)
{
	topo_build_wire(&p->build, h, 1, p->size.hosts + s, port);
}

/* Wires two switches. */
static void cable(struct plan *p, unsigned a, unsigned a_port, unsigned b, unsigned b_port)
{
	topo_build_wire(&p->build, p->size.hosts + a, a_port, p->size.hosts + b, b_port);
}

/* ---- ib:N: one switch ---- */

static const char *ib_measure(const unsigned v[NUMBERS], struct size *size)
{
	*size = (struct size){v[0], 1, v[0]};
	return NULL;
}

static void ib_wire(struct plan *p)
{
	for (unsigned h = 0; h < p->v[0]; h++)
		host(p, h, 0, h + 1);
}

static void ib_describe(const unsigned v[NUMBERS], unsigned s, char *text, size_t size)
{
	(void)v;
	snprintf(text, size, "switch %u", s);
}

/* ---- ft2: leaves, half of whose ports are hosts', and spines, each wired to each leaf ---- */

enum { RADIX, LEAVES, SPINES };

static const char *ft2_measure(const unsigned v[NUMBERS], struct size *size)
{
	*size = (struct size){
		(uint64_t)v[LEAVES] * (v[RADIX] / 2), v[LEAVES] + v[SPINES], v[RADIX]};
	return v[RADIX] % 2           ? "RADIX is even"
	       : v[LEAVES] > v[RADIX] ? "a spine has a port for each leaf: LEAVES is at most RADIX"
	       : v[SPINES] > v[RADIX] / 2
		       ? "half of a leaf's ports are for spines: SPINES is at most RADIX/2"
		       : NULL;
}

static void ft2_wire(struct plan *p)
{
	const unsigned half = p->v[RADIX] / 2;

	for (unsigned l = 0; l < p->v[LEAVES]; l++) {
		for (unsigned i = 0; i < half; i++)
			host(p, l * half + i, l, i + 1);
		for (unsigned s = 0; s < p->v[SPINES]; s++)
			cable(p, l, half + 1 + s, p->v[LEAVES] + s, l + 1);
	}
}

static void ft2_describe(const unsigned v[NUMBERS], unsigned s, char *text, size_t size)
{
	bool leaf = s < v[LEAVES];

	snprintf(text, size, "%s %u", leaf ? "leaf" : "spine", leaf ? s : s - v[LEAVES]);
}

/* ---- ft3: K pods of K/2 edge and K/2 aggregation switches, and (K/2)^2 cores ---- */

static const char *ft3_measure(const unsigned v[NUMBERS], struct size *size)
{
	const uint64_t k = v[0];

	*size = (struct size){k * k * k / 4, 5 * k * k / 4, k};
	return k % 2 ? "K is even" : NULL;
}

static void ft3_pod(struct plan *p, unsigned pod)
{
	const unsigned k = p->v[0], m = k / 2, edges = pod * m, aggs = (k + pod) * m;
	const unsigned cores = 2 * k * m;

	for (unsigned e = 0; e < m; e++)
		for (unsigned i = 0; i < m; i++) {
			host(p, (edges + e) * m + i, edges + e, i + 1);
			cable(p, edges + e, m + i + 1, aggs + i, e + 1);
			cable(p, aggs + e, m + i + 1, cores + e * m + i, pod + 1);
		}
}

static void ft3_wire(struct plan *p)
{
	for (unsigned pod = 0; pod < p->v[0]; pod++)
		ft3_pod(p, pod);
}

static void ft3_describe(const unsigned v[NUMBERS], unsigned s, char *text, size_t size)
{
	const unsigned m = v[0] / 2, level = v[0] * m;

	if (s >= 2 * level)
		snprintf(text, size, "core %u", s - 2 * level);
	else
		snprintf(text, size, "%s %u of pod %u", s < level ? "edge" : "aggregation", s % m,
			s % level / m);
}

/* ---- torus: ports 1 and 2 lead to the next and the last in x, 3 and 4 in y, 5 and 6 in z ---- */

enum { TORUS_HOSTS = 3, TORUS_PORTS = 6 };

static const char *torus_measure(const unsigned v[NUMBERS], struct size *size)
{
	const uint64_t switches = (uint64_t)v[0] * v[1] * v[2];

	*size = (struct size){switches * v[TORUS_HOSTS], switches, TORUS_PORTS + v[TORUS_HOSTS]};
	return NULL;
}

/* The next switch in that dimension; itself if it is the only one there. */
static unsigned torus_next(const unsigned v[NUMBERS], unsigned s, unsigned dimension)
{
	unsigned step = 1, at;

	for (unsigned d = 0; d < dimension; d++)
		step *= v[d];
	at = s / step % v[dimension];
	return s - at * step + (at + 1) % v[dimension] * step;
}

static void torus_wire(struct plan *p)
{
	const unsigned hosts = p->v[TORUS_HOSTS];

	for (unsigned s = 0; s < p->size.switches; s++) {
		for (unsigned d = 0; d < 3; d++)
			if (p->v[d] > 1)
				cable(p, s, 2 * d + 1, torus_next(p->v, s, d), 2 * d + 2);
		for (unsigned h = 0; h < hosts; h++)
			host(p, s * hosts + h, s, TORUS_PORTS + 1 + h);
	}
}

static void torus_describe(const unsigned v[NUMBERS], unsigned s, char *text, size_t size)
{
	snprintf(text, size, "switch %u,%u,%u", s % v[0], s / v[0] % v[1], s / v[0] / v[1]);
}

/* ---- dragonfly: A*H+1 groups of A routers, each pair of groups with one cable ---- */

enum { PER_ROUTER, ROUTERS, GLOBAL };

static const char *dragonfly_measure(const unsigned v[NUMBERS], struct size *size)
{
	const uint64_t routers = ((uint64_t)v[ROUTERS] * v[GLOBAL] + 1) * v[ROUTERS];

	*size = (struct size){
		routers * v[PER_ROUTER], routers, v[PER_ROUTER] + v[ROUTERS] - 1 + v[GLOBAL]};
	return NULL;
}

/* The port of router a of a group that leads to its router b: hosts have the first ports. */
static unsigned local_port(const unsigned v[NUMBERS], unsigned a, unsigned b)
{
	return v[PER_ROUTER] + (b < a ? b + 1 : b);
}

/* The cables of a group within it and to later ones; cable c of a group is its router c/H's. */
static void dragonfly_group(struct plan *p, unsigned g)
{
	const unsigned *v = p->v, a = v[ROUTERS], h = v[GLOBAL];
	const unsigned first = v[PER_ROUTER] + a; /* global port */

	for (unsigned i = 0; i < a; i++)
		for (unsigned j = i + 1; j < a; j++)
			cable(p, g * a + i, local_port(v, i, j), g * a + j, local_port(v, j, i));
	for (unsigned to = g + 1; to <= a * h; to++)
		cable(p, g * a + (to - 1) / h, first + (to - 1) % h, to * a + g / h, first + g % h);
}

static void dragonfly_wire(struct plan *p)
{
	for (unsigned g = 0; g <= p->v[ROUTERS] * p->v[GLOBAL]; g++)
		dragonfly_group(p, g);
	for (unsigned n = 0; n < p->size.hosts; n++)
		host(p, n, n / p->v[PER_ROUTER], n % p->v[PER_ROUTER] + 1);
}

static void dragonfly_describe(const unsigned v[NUMBERS], unsigned s, char *text, size_t size)
{
	snprintf(text, size, "router %u of group %u", s % v[ROUTERS], s / v[ROUTERS]);
}

/* ---- all of them ---- */

static const struct shape shapes[] = {
	{"ib:", "ib:N", "", 0, ib_measure, ib_wire, ib_describe},
	{"ft2:", "ft2:RADIX,LEAVES,SPINES", ",,", 0, ft2_measure, ft2_wire, ft2_describe},
	{"ft3:", "ft3:K", "", 0, ft3_measure, ft3_wire, ft3_describe},
	{"torus:", "torus:XxYxZ[,HOSTS]", "xx,", 1, torus_measure, torus_wire, torus_describe},
	{"dragonfly:", "dragonfly:P,A,H", ",,", 0, dragonfly_measure, dragonfly_wire,
		dragonfly_describe},
};

static const struct shape *find_shape(struct lex *l)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (lex_eat_text(l, shapes[i].name))
			return &shapes[i];
	return NULL;
}

bool generate_is_spec(const char *text)
{
	struct lex l = {text, text + strlen(text)};

	return find_shape(&l);
}

static int __attribute__((format(printf, 3, 4)))
fail(struct plan *p, const char *spec, const char *fmt, ...)
{
	int n = snprintf(p->error, TOPO_ERROR, "%.100s: ", spec);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->error + n, TOPO_ERROR - n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* The numbers; each of them small enough that products of all stay in 64 bits. */
static bool take_numbers(struct plan *p, struct lex *l)
{
	const size_t n = strlen(p->shape->between) + 1;
	uint64_t v;

	for (size_t i = 0; i < NUMBERS; i++)
		p->v[i] = 1;
	for (size_t i = 0; i < n; i++) {
		if (i && i + p->shape->optional >= n && l->p == l->end)
			break;
		if ((i && !lex_eat(l, p->shape->between[i - 1])) ||
			!lex_number(l, TOPO_UNICAST_LIDS, &v) || !v)
			return false;
		p->v[i] = v;
	}
	return l->p == l->end;
}

static int take_spec(struct plan *p, const char *spec)
{
	struct lex l = {spec, spec + strlen(spec)};
	const char *broken;

	p->shape = find_shape(&l);
	if (!p->shape)
		return fail(p, spec, "no generator has this name");
	if (!take_numbers(p, &l))
		return fail(p, spec, "this should be %s, of numbers from 1 to %d", p->shape->form,
			TOPO_UNICAST_LIDS);
	broken = p->shape->measure(p->v, &p->size);
	if (broken)
		return fail(p, spec, "%s", broken);
	if (p->size.ports > TOPO_MAX_PORTS)
		return fail(p, spec, "switches of %" PRIu64 " ports: a switch has at most %d",
			p->size.ports, TOPO_MAX_PORTS);
	if (p->size.hosts + p->size.switches > TOPO_UNICAST_LIDS)
		return fail(p, spec,
			"%" PRIu64 " hosts and %" PRIu64 " switches: a subnet has %d LIDs",
			p->size.hosts, p->size.switches, TOPO_UNICAST_LIDS);
	return 0;
}

static int add_nodes(struct plan *p)
{
	char id[TOPO_TEXT_MAX], text[TOPO_TEXT_MAX];
	uint32_t n;
	int rc = 0;

	for (unsigned h = 0; !rc && h < p->size.hosts; h++) {
		snprintf(id, sizeof id, "H%u", h);
		rc = topo_build_node(&p->build, TOPO_CA, 1, id, id, &n);
	}
	for (unsigned s = 0; !rc && s < p->size.switches; s++) {
		snprintf(id, sizeof id, "S%u", s);
		p->shape->describe(p->v, s, text, sizeof text);
		rc = topo_build_node(&p->build, TOPO_SWITCH, p->size.ports, id, text, &n);
	}
	return rc;
}

int generate(struct topo *out, const char *spec, char error[TOPO_ERROR])
{
	struct plan p = {.error = error};
	int rc;

	*out = (struct topo){0};
	topo_build_begin(&p.build);
	p.build.caps = (struct topo_caps){.width = 3, .speed = 7, .ext_speed = 3};
	rc = take_spec(&p, spec);
	if (rc)
		return rc;
	rc = add_nodes(&p);
	if (!rc) {
		p.shape->wire(&p);
		rc = topo_build_end(&p.build, out);
	}
	if (rc)
		fail(&p, spec, "%s", strerror(-rc));
	topo_build_drop(&p.build);
	return rc;
}
