// SPDX-License-Identifier: BSD-3-Clause
/* Messages between heirs of SCIF endpoints and who made them, with what should not come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scif/heir/heir_msg.h"

enum { MANY_FDS = 8, FULL = 100000 };

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A head and n fds, by hand. */
static void put_fds(int sock, uint64_t head, int n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(MANY_FDS * sizeof(int))];
	} c = {0};
	struct iovec v = {&head, sizeof head};
	struct msghdr h = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &c,
		.msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&h);

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (int i = 0; i < n; i++)
		memcpy(CMSG_DATA(cm) + i * sizeof(int), &sock, sizeof sock);
	assert_int_equal(sendmsg(sock, &h, 0), sizeof head);
}

static void surplus_fds_are_closed(void **state)
{
	uint64_t head;
	char data[8];
	int s[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	for (int n = 1; n <= MANY_FDS; n++) {
		struct heir_msg m = {&head, sizeof head, data, sizeof data, {-1, -1, -1}};
		int before = open_fds();

		put_fds(s[0], n, n);
		assert_int_equal(heir_get(s[1], &m), n <= HEIR_FDS ? 0 : -EBADMSG);
		if (n <= HEIR_FDS) {
			assert_int_equal(head, n);
			assert_int_equal(m.len, 0);
			assert_int_equal(open_fds(), before + n);
			heir_drop(&m);
		}
		assert_int_equal(open_fds(), before);
	}
	close(s[0]);
	close(s[1]);
}

/* Who asked, and does not read, holds up nobody. */
static void an_answer_does_not_wait(void **state)
{
	uint64_t head = 1;
	struct heir_msg m = {&head, sizeof head, NULL, 0, {-1, -1, -1}};
	int s[2], i = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	while (i < FULL && !heir_answer(s[0], &m))
		i++;
	assert_in_range(i, 1, FULL - 1);
	assert_int_equal(heir_answer(s[0], &m), -ECONNRESET);
	close(s[1]);
	assert_int_equal(heir_put(s[0], &m), -ECONNRESET);
	close(s[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(surplus_fds_are_closed),
		cmocka_unit_test(an_answer_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
