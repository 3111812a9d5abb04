// SPDX-License-Identifier: BSD-3-Clause
/* The example of scif(7), which has the lines below. */

#include <scif.h>
#include <stdio.h>
#include <stdlib.h>

static _Alignas(4096) char page[4096];

static long ok(long ret, const char *call)
{
	if (ret < 0) {
		perror(call);
		exit(1);
	}
	return ret;
}

static void server(scif_epd_t l)
{
	struct scif_portID peer;
	scif_epd_t e;
	off_t at;

	ok(scif_bind(l, 2052), "scif_bind");
	ok(scif_listen(l, 1), "scif_listen");
	ok(scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC), "scif_accept");
	at = ok(scif_register(e, page, 4096, 0, SCIF_PROT_WRITE, 0), "scif_register");
	ok(scif_send(e, &at, sizeof(at), SCIF_SEND_BLOCK), "scif_send");
	ok(scif_recv(e, page + 4095, 1, SCIF_RECV_BLOCK), "scif_recv");
	puts(page);
}

static void client(scif_epd_t e)
{
	struct scif_portID to = {.node = 0, .port = 2052};
	off_t at;

	ok(scif_connect(e, &to), "scif_connect"); /* its own port, not 0 */
	ok(scif_recv(e, &at, sizeof(at), SCIF_RECV_BLOCK), "scif_recv");
	ok(scif_vwriteto(e, "hello", 6, at, SCIF_RMA_SYNC), "scif_vwriteto");
	ok(scif_send(e, "", 1, SCIF_SEND_BLOCK), "scif_send");
}

int main(int argc, char **argv)
{
	scif_epd_t e = ok(scif_open(), "scif_open");

	(void)argv;
	argc > 1 ? client(e) : server(e);
	return scif_close(e);
}
