// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: a small subnet, with any SMPs and datagrams from any of its ports, agents asked past
 * their M_Keys, cables pulled and plugged, packets lost, and time that goes on.
 *
 * The input is a list of steps: which one, where, four more bytes, and of a MAD patches of a
 * sensible one: their number, then place and byte of each.
 */
#include <stdlib.h>
#include <string.h>

#include "subnet/state.h"

enum { NODES = 5, PORTS = 4, PATCHES = 32 };

static struct topo_port ports[NODES][PORTS + 1];
static struct topo_node nodes[NODES];
static uint64_t the_time;
static unsigned delivered;

static bool deliver(void *arg, uint32_t node, uint8_t port, unsigned qp,
	const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	(void)arg, (void)mad;
	if (node >= NODES || port > nodes[node].n_ports || qp > 1 || from->port != port)
		abort();
	return ++delivered % 3;
}

static void event(void *arg, uint32_t node, uint8_t port, unsigned events)
{
	(void)arg;
	if (node >= NODES || port > nodes[node].n_ports || !events)
		abort();
}

static uint64_t now(void *arg)
{
	(void)arg;
	return the_time;
}

static void wire(uint32_t a, uint8_t p, uint32_t b, uint8_t q)
{
	ports[a][p].peer = b;
	ports[a][p].peer_port = q;
	ports[b][q].peer = a;
	ports[b][q].peer_port = p;
}

/* Two adapters, one of them with two ports, three switches in a circle. */
static struct subnet *begin(void)
{
	static const struct topo t = {.nodes = nodes, .n_nodes = NODES, .n_cas = 2};
	static const struct subnet_ops ops = {deliver, event, now, NULL};
	struct subnet *s;

	for (uint32_t i = 0; i < NODES; i++) {
		nodes[i] = (struct topo_node){.kind = i < 2 ? TOPO_CA : TOPO_SWITCH,
			.n_ports = i < 2 ? 2 - i : PORTS,
			.enhanced = i == 3,
			.description = "node",
			.ports = ports[i]};
		for (int p = 0; p <= PORTS; p++)
			ports[i][p] = (struct topo_port){.peer = TOPO_NONE,
				.width = 3,
				.speed = 7,
				.lid = p < 2 ? i + 1 : 0};
	}
	wire(0, 1, 2, 1);
	wire(0, 2, 3, 4);
	wire(1, 1, 3, 1);
	wire(2, 2, 3, 2);
	wire(3, 3, 4, 2);
	wire(4, 3, 2, 3);
	if (subnet_create(&s, &t, &ops))
		abort();
	return s;
}

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t next(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

/* One that an agent would answer, and then patched. */
static void make_mad(struct input *in, uint8_t class, uint8_t mad[MAD_SIZE])
{
	static const uint16_t attrs[] = {SMP_NOTICE, SMP_NODE_DESC, SMP_NODE_INFO, SMP_SWITCH_INFO,
		SMP_GUID_INFO, SMP_PORT_INFO, SMP_PKEY_TABLE, SMP_SL2VL, SMP_VL_ARB, SMP_LFT,
		SMP_MFT, SMP_SM_INFO, 0x12, 0x15, 0x16, 0x1d};
	uint8_t how = next(in);
	struct smp_hdr h = {.base_version = 1,
		.mgmt_class = class,
		.class_version = 1,
		.method = how & 0x80 ? MAD_SET : MAD_GET,
		.attr = attrs[how & 15],
		.hop_cnt = how >> 4 & 7,
		.dr_slid = LID_PERMISSIVE,
		.dr_dlid = LID_PERMISSIVE};

	memset(mad, 0, MAD_SIZE);
	wire_pack(&smp_hdr_format, &h, mad);
	for (int i = 1; i < 8; i++)
		mad[SMP_INITIAL_PATH + i] = i % 3 + 1;
	for (unsigned n = next(in) % PATCHES; n; n--) {
		uint8_t at = next(in);

		mad[at] = next(in);
	}
}

static void send(struct subnet *s, struct input *in, uint8_t where, const uint8_t args[4])
{
	static const uint8_t classes[] = {
		MAD_CLASS_SUBN_LID, MAD_CLASS_SUBN_DR, MAD_CLASS_PERF, MAD_CLASS_VENDOR2};
	uint8_t class = classes[args[0] & 3], mad[MAD_SIZE];
	struct mad_addr to = {.lid = args[1] & 0x80 ? LID_PERMISSIVE : args[1],
		.sl = args[2],
		.path_bits = args[3],
		.pkey_index = args[3] & 1,
		.qpn = 1,
		.has_grh = args[2] >> 7};

	make_mad(in, class, mad);
	(void)subnet_send(s, where >> 4, where & 15, (args[0] & 3) >= 2, &to, mad);
}

static void local(struct subnet *s, struct input *in, uint8_t where)
{
	uint8_t mad[MAD_SIZE];

	make_mad(in, MAD_CLASS_SUBN_LID, mad);
	(void)subnet_local_smp(s, where >> 4, where & 15, mad);
}

static void cable(struct subnet *s, uint8_t where, const uint8_t args[4])
{
	if (args[0] % 3 == 0)
		(void)subnet_unlink(s, where >> 4, where & 15);
	else if (args[0] % 3 == 1)
		(void)subnet_relink(s, where >> 4, where & 15);
	else
		(void)subnet_link(s, where >> 4, where & 15, args[1] >> 4, args[1] & 15);
}

static void disturb(struct subnet *s, uint8_t where, const uint8_t args[4])
{
	const struct mad_addr from = {.lid = args[1], .qpn = args[2]};

	if (args[0] % 3 == 0)
		(void)subnet_set_errors(s, where >> 4, where & 15, args[1], args[2]);
	else if (args[0] % 3 == 1)
		(void)subnet_set_sm(s, where >> 4, where & 15, args[1] & 1);
	else
		(void)subnet_bad_qkey(s, where >> 4, where & 15, &from, args[3]);
}

static void wait(struct subnet *s, const uint8_t args[4])
{
	the_time += (uint64_t)args[0] << (args[1] & 31);
	subnet_run(s);
	if (subnet_next(s) && subnet_next(s) <= the_time)
		abort();
}

/* What must hold whatever a MAD says. */
static void verify(const struct subnet *s)
{
	for (uint32_t i = 1; i < s->t.head->n_ports; i++) {
		const struct tables_port *h = hot_at(s, i);
		uint32_t peer = tables_load(&h->peer);
		uint8_t state = tables_load(&h->state), vls = tables_load(&h->vls);

		if (peer &&
			(peer >= s->t.head->n_ports || tables_load(&hot_at(s, peer)->peer) != i))
			abort();
		if (port_at(s, i)->num && (state == PORT_DOWN) != !peer)
			abort();
		if ((port_at(s, i)->phys == PHYS_LINK_UP) != (peer || !port_at(s, i)->num))
			abort();
		if (!vls || vls > VLS || tables_load(&h->lid) >= LID_MULTICAST)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct subnet *s = begin();

	the_time = 1;
	while (in.left) {
		uint8_t what = next(&in), where = next(&in), args[4];

		for (int i = 0; i < 4; i++)
			args[i] = next(&in);
		if (what % 8 < 4)
			send(s, &in, where, args);
		else if (what % 8 == 4)
			local(s, &in, where);
		else if (what % 8 == 5)
			cable(s, where, args);
		else if (what % 8 == 6)
			disturb(s, where, args);
		else
			wait(s, args);
		verify(s);
	}
	subnet_free(s);
	return 0;
}
