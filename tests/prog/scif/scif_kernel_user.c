// SPDX-License-Identifier: BSD-3-Clause
#include "tests/prog/scif/scif_kernel_user.h"

#include <scif.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"

int user_send_bytes(int fd, const char *bytes, int len)
{
	CHECK_EQ(weft_scif_to_fd(weft_scif_from_fd(fd)), fd);
	return scif_send(fd, (void *)bytes, len, SCIF_SEND_BLOCK);
}

int user_recv_bytes(int fd, char *bytes, int len)
{
	return scif_recv(fd, bytes, len, SCIF_RECV_BLOCK);
}

int user_close_it(int fd)
{
	return scif_close(fd);
}

int user_poll_in(int fd, long ms)
{
	return scif_events(fd, SCIF_POLLIN, ms) == SCIF_POLLIN;
}

void user_echo(int in, int out)
{
	scif_epd_t epd = scif_dial(0, scif_hear(in));
	char byte;

	(void)out;
	while (scif_recv(epd, &byte, 1, SCIF_RECV_BLOCK) == 1)
		CHECK_EQ(scif_send(epd, &byte, 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(errno, ECONNRESET);
	CHECK_EQ(scif_close(epd), 0);
}
