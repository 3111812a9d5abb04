// SPDX-License-Identifier: BSD-3-Clause
/* The toy of mad-agent.patch: another agent of weftd's port asks it, and hears what it said. */
#include <errno.h>
#include <string.h>

#include "daemon/mad_echo.h"
#include "daemon/mad_service.h"
#include "mad/agents.h"
#include "tests/lib/check.h"

enum { ATTR = 0x1234, TIMEOUT_MS = 1000, BYTE = 200 };

static struct fabric_page page;
static struct node node = {.page = &page};
static struct server server = {.node = &node};
static struct mad_service service;
static uint8_t heard[MAD_SIZE];
static int status = 1;

/* The toy's port has no way to other machines. */
void qp1_start(struct qp1 *q, struct server *s, struct mad_port *port)
{
	(void)q;
	(void)s;
	(void)port;
}

int qp1_send(struct qp1 *q, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	(void)q;
	(void)to;
	(void)mad;
	return -EHOSTUNREACH;
}

static void on_done(struct mad_agent *a, struct mad_send *s, int result, const uint8_t *response)
{
	(void)a;
	(void)s;
	status = result;
	if (response)
		memcpy(heard, response, sizeof heard);
}

/* Asks for a class at the port's own GID; what became of it. */
static int ask(struct mad_agent *a, uint8_t mgmt_class)
{
	struct mad_hdr hdr = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = mgmt_class,
		.class_version = ECHO_VERSION,
		.method = MAD_GET,
		.tid = mad_tid(a, 1),
		.attr = ATTR};
	struct mad_addr to = mad_addr_of_gids(page.port[0].gid[0].raw, page.port[0].gid[0].raw);
	uint8_t mad[MAD_SIZE] = {[BYTE] = 77};
	struct mad_send *sent;

	wire_pack(&mad_hdr_format, &hdr, mad);
	status = 1;
	CHECK_EQ(mad_send(a, &to, mad, TIMEOUT_MS, 0, true, NULL, &sent), 0);
	while (status == 1)
		mad_run(&service.layer, 1);
	return status;
}

int main(void)
{
	struct mad_agent asks = {.reg = {.qpn = 1}, .done = on_done};
	struct mad_hdr hdr;

	page.port[0].n_gids = 1;
	page.port[0].gid[0].type = 2;
	page.port[0].gid[0].raw[0] = 0xfe;
	mad_service_start(&service, &server);
	CHECK_EQ(mad_register(&service.port, &asks), 0);
	CHECK_EQ(ask(&asks, ECHO_CLASS), 0);
	wire_unpack(&mad_hdr_format, heard, &hdr);
	CHECK_EQ(hdr.method, MAD_GET_RESP);
	CHECK_EQ(hdr.status, 0);
	CHECK_EQ(hdr.attr, ATTR);
	CHECK_EQ(heard[BYTE], 77);
	/* One that nobody answers to is refused by the port. */
	CHECK_EQ(ask(&asks, ECHO_CLASS + 1), 0);
	wire_unpack(&mad_hdr_format, heard, &hdr);
	CHECK(hdr.status != 0);
	mad_port_end(&service.port);
	mad_layer_end(&service.layer);
	return check_result();
}
