// SPDX-License-Identifier: BSD-3-Clause
/* WEFT_SCIF_CHECK=1: what the log says of failures and of what goes wrong without one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"

enum { PAGE = 4096, LEN = 4 * PAGE, OFF = 0x100000, TEXT = 4096 };

static int log_fd;

/* Does the log, since the last time, say this?  NULL: nothing at all. */
static void expect(const char *text)
{
	static char got[TEXT];
	ssize_t n = pread(log_fd, got, sizeof(got) - 1, 0);

	got[n > 0 ? n : 0] = '\0';
	if (ftruncate(log_fd, 0) || lseek(log_fd, 0, SEEK_SET))
		die("the log");
	/* what fails is printed on stderr, which is the log */
	if (!CHECK(text ? strstr(got, text) != NULL : !strstr(got, "SCIF check")))
		printf("expected: %s; the log: %s\n", text ? text : "nothing", got);
}

static void begin(void)
{
	setenv("WEFT_SCIF_CHECK", "1", 1);
	unsetenv("WEFT_LOG");
	log_fd = memfd_create("log", MFD_CLOEXEC);
	if (log_fd < 0 || dup2(log_fd, STDERR_FILENO) < 0)
		die("no log");
}

static void reasons_of_endpoints(void)
{
	struct scif_portID dst = {0, 0};
	scif_epd_t e = scif_open();

	CHECK_EQ(scif_bind(-1, 0), -1);
	expect("scif_bind: EBADF: no open file descriptor");
	CHECK_EQ(scif_listen(log_fd, 1), -1);
	expect("scif_listen: ENOTTY: a file descriptor, but no SCIF endpoint");
	CHECK_EQ(scif_listen(e, 1), -1);
	expect("scif_listen: EINVAL: the endpoint is not bound");
	CHECK(scif_bind(e, 0) > 0);
	CHECK_EQ(scif_bind(e, 0), -1);
	expect("scif_bind: EINVAL: the endpoint is bound already, to port");
	CHECK_EQ(scif_connect(e, &dst), -1);
	expect("scif_connect: EINVAL: the port is 0");
	CHECK_EQ(scif_connect(e, NULL), -1);
	expect("scif_connect: EINVAL: dst is NULL");
	CHECK_EQ(scif_accept(e, NULL, &e, 0), -1);
	expect("scif_accept: EINVAL: peer is NULL");
	CHECK_EQ(scif_accept(e, &dst, &e, 2), -1);
	expect("scif_accept: EINVAL: flags has bits other than SCIF_ACCEPT_SYNC");
	CHECK_EQ(scif_send(e, "x", -1, 0), -1);
	expect("scif_send: EINVAL: len is negative");
	CHECK_EQ(scif_get_nodeIDs(NULL, -1, NULL), -1);
	expect("scif_get_nodeIDs: EINVAL: len is negative");
	CHECK_EQ(scif_send(e, "x", 1, 0), -1);
	expect("scif_send: ENOTCONN: the endpoint is not connected");
	CHECK_EQ(scif_close(e), 0);
	expect(NULL);
}

static void reasons_of_windows(struct scif_pair *p, uint8_t *m)
{
	int mark;

	CHECK_EQ(scif_register(p->a, m + 1, PAGE, 0, SCIF_PROT_READ, 0), -1);
	expect("scif_register: EINVAL: address and length must be multiples of the page size");
	CHECK_EQ(scif_register(p->a, m, PAGE, 1, SCIF_PROT_READ, SCIF_MAP_FIXED), -1);
	expect("scif_register: EINVAL: SCIF_MAP_FIXED needs an offset");
	CHECK_EQ(scif_register(p->a, m, LEN, OFF, 3, SCIF_MAP_FIXED), OFF);
	CHECK_EQ(scif_register(p->b, m + LEN, LEN, OFF, SCIF_PROT_READ, SCIF_MAP_FIXED), OFF);
	CHECK_EQ(scif_register(p->a, m, LEN, OFF, 3, SCIF_MAP_FIXED), -1);
	expect("scif_register: EADDRINUSE: the offsets overlap a window");
	CHECK_EQ(scif_unregister(p->a, OFF, PAGE), -1);
	expect("scif_unregister: EINVAL: the range ends in the middle of the window at 0x100000");
	CHECK_EQ(scif_unregister(p->a, 0, PAGE), -1);
	expect("scif_unregister: ENXIO: no open window lies in the range");
	CHECK_EQ(scif_register(p->a, m, PAGE, -1, 3, 0), -1);
	expect("scif_register: EINVAL: the offset is negative");
	CHECK_EQ(scif_register(p->a, m, PAGE, 0, 0, 0), -1);
	expect("scif_register: EINVAL: the protection must be");
	CHECK(scif_mmap(NULL, PAGE, 3, 0, p->a, 1) == SCIF_MMAP_FAILED);
	expect("scif_mmap: EINVAL: the offset must be a multiple of the page size");
	CHECK(scif_mmap(NULL, PAGE, 3, SCIF_MAP_FIXED, p->a, OFF) == SCIF_MMAP_FAILED);
	expect("scif_mmap: EINVAL: SCIF_MAP_FIXED needs an address");
	CHECK_EQ(scif_unpin_pages(NULL), -1);
	expect("scif_unpin_pages: EINVAL: no handle of scif_pin_pages()");
	CHECK_EQ(scif_put_pages(NULL), -1);
	expect("scif_put_pages: EINVAL: not of scif_get_pages()");
	CHECK_EQ(scif_writeto(p->a, OFF, PAGE, 0, 0), -1);
	expect("scif_writeto: ENXIO: no open window at offset 0");
	CHECK_EQ(scif_writeto(p->a, OFF, PAGE, OFF, 0), -1);
	expect("scif_writeto: EACCES: the window at 0x100000 is not registered for writing");
	CHECK_EQ(scif_readfrom(p->a, OFF, 0, OFF, 0), -1);
	expect("scif_readfrom: EINVAL: len is 0");
	CHECK_EQ(scif_readfrom(p->a, OFF, 1, OFF, 64), -1);
	expect("scif_readfrom: EINVAL: flags has unknown bits");
	CHECK_EQ(scif_fence_mark(p->a, 3, &mark), -1);
	expect("scif_fence_mark: EINVAL: flags must be one of");
	CHECK_EQ(scif_fence_wait(p->a, 12345), -1);
	expect("scif_fence_wait: EINVAL");
}

/* Copies that nobody waits for; m is the window of p->a. */
static void unfenced(struct scif_pair *p, uint8_t *m)
{
	int mark;

	CHECK_EQ(scif_readfrom(p->a, OFF, PAGE, OFF, 0), 0);
	CHECK_EQ(scif_fence_mark(p->a, SCIF_FENCE_INIT_SELF, &mark), 0);
	CHECK_EQ(scif_fence_wait(p->a, mark), 0);
	CHECK_EQ(scif_send(p->a, m + 5, 10, 0), 10);
	CHECK_EQ(scif_readfrom(p->a, OFF, PAGE, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(scif_send(p->a, m + 5, 10, 0), 10);
	expect(NULL);
	CHECK_EQ(scif_readfrom(p->a, OFF, PAGE, OFF, 0), 0);
	CHECK_EQ(scif_send(p->a, m + PAGE, 10, 0), 10);
	expect(NULL);
	CHECK_EQ(scif_send(p->a, m + PAGE - 5, 10, 0), 10);
	expect("scif_send() reads what an asynchronous copy writes");
	CHECK_EQ(scif_vwriteto(p->b, m + LEN, PAGE, OFF, 0), 0);
	CHECK_EQ(scif_send(p->b, "done", 4, 0), 4);
	expect("a message follows an asynchronous copy without a fence");
	CHECK_EQ(scif_send(p->b, "done", 4, 0), 4);
	expect(NULL); /* said once */
}

static void port_taken_for_failure(void)
{
	struct scif_pair p = scif_make_pair();
	struct scif_portID dst = {0, p.port};
	struct scif_portID peer;
	scif_epd_t e;

	expect("scif_connect: EINPROGRESS: no failure");
	scif_get_nodeIDs(NULL, 0, &dst.node);
	CHECK_EQ(scif_connect(p.a, &dst), -1);
	CHECK_EQ(errno, EISCONN);
	expect("which returned its port");
	CHECK_EQ(scif_send(p.a, "x", 1, 0), 1);
	scif_end_pair(&p);
	expect(NULL);
	p = scif_make_pair();
	expect("EINPROGRESS");
	CHECK_EQ(scif_close(p.a), 0);
	expect("scif_close: connected, never used: scif_connect() had returned its port");
	e = p.b;
	CHECK_EQ(scif_accept(p.listener, &peer, &p.b, 0), -1);
	expect("scif_accept: EAGAIN: no request waits");
	CHECK_EQ(scif_close(e), 0);
	CHECK_EQ(scif_close(p.listener), 0);
}

int main(void)
{
	struct scif_pair p;
	uint8_t *m;

	begin();
	reasons_of_endpoints();
	m = scif_pages(2 * LEN);
	p = scif_make_pair();
	expect("EINPROGRESS");
	reasons_of_windows(&p, m);
	unfenced(&p, m);
	CHECK_EQ(scif_close(p.a), 0);
	expect("asynchronous copies were never waited for");
	scif_close(p.b);
	scif_close(p.listener);
	expect("asynchronous copies were never waited for");
	port_taken_for_failure();
	return check_result();
}
