// SPDX-License-Identifier: BSD-3-Clause
/*
 * Copies a file to another process by RMA:
 *
 *   scif_copy receive PORT FILE          waits for one sender and writes FILE
 *   scif_copy send NODE PORT FILE
 *
 * The receiver opens a window and sends its offset; the sender writes pieces of the file into it
 * and says by a message how long each is; the receiver answers when it has taken it.
 */
#include <fcntl.h>
#include <scif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20 };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void send_all(scif_epd_t epd, void *p, int len)
{
	if (scif_send(epd, p, len, SCIF_SEND_BLOCK) != len)
		fail("scif_send");
}

static void recv_all(scif_epd_t epd, void *p, int len)
{
	if (scif_recv(epd, p, len, SCIF_RECV_BLOCK) != len)
		fail("scif_recv");
}

static void *buffer(void)
{
	void *p = aligned_alloc(4096, PIECE);

	if (!p)
		fail("aligned_alloc");
	return p;
}

static void receive(uint16_t port, const char *name)
{
	int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	scif_epd_t listener = scif_open(), epd;
	struct scif_portID peer;
	void *window = buffer();
	int64_t len;
	off_t offset;

	if (file < 0)
		fail(name);
	if (listener < 0 || scif_bind(listener, port) < 0 || scif_listen(listener, 1))
		fail("cannot listen");
	if (scif_accept(listener, &peer, &epd, SCIF_ACCEPT_SYNC))
		fail("scif_accept");
	offset = scif_register(epd, window, PIECE, 0, SCIF_PROT_READ | SCIF_PROT_WRITE, 0);
	if (offset == SCIF_REGISTER_FAILED)
		fail("scif_register");
	send_all(epd, &offset, sizeof(offset));
	for (;;) {
		recv_all(epd, &len, sizeof(len));
		if (!len)
			break;
		if (len < 0 || len > PIECE || write(file, window, len) != len)
			fail(name);
		send_all(epd, &len, sizeof(len));
	}
	if (close(file))
		fail(name);
	send_all(epd, &len, sizeof(len)); /* it is all there */
	scif_close(epd);
	scif_close(listener);
}

static void transmit(uint16_t node, uint16_t port, const char *name)
{
	struct scif_portID dst = {node, port};
	int file = open(name, O_RDONLY);
	scif_epd_t epd = scif_open();
	void *piece = buffer();
	int64_t len, taken;
	off_t offset;

	if (file < 0)
		fail(name);
	if (epd < 0 || scif_connect(epd, &dst) < 0)
		fail("cannot connect");
	recv_all(epd, &offset, sizeof(offset));
	while ((len = read(file, piece, PIECE)) > 0) {
		if (scif_vwriteto(epd, piece, len, offset, SCIF_RMA_SYNC | SCIF_RMA_USECACHE))
			fail("scif_vwriteto");
		send_all(epd, &len, sizeof(len));
		recv_all(epd, &taken, sizeof(taken));
	}
	if (len < 0)
		fail(name);
	send_all(epd, &len, sizeof(len)); /* 0: the end */
	recv_all(epd, &taken, sizeof(taken));
	scif_close(epd);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "receive") == 0) {
		receive(atoi(argv[2]), argv[3]);
		return 0;
	}
	if (argc == 5 && strcmp(argv[1], "send") == 0) {
		transmit(atoi(argv[2]), atoi(argv[3]), argv[4]);
		return 0;
	}
	fprintf(stderr, "usage: scif_copy receive PORT FILE | send NODE PORT FILE\n");
	return 2;
}
