// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdv/paths.h"
#include "rdv/proto.h"

static void names(void **state)
{
	(void)state;
	assert_true(rdv_fabric_name_ok("default"));
	assert_true(rdv_fabric_name_ok("a-B_9.x"));
	assert_true(rdv_fabric_name_ok("12345678901234567890123456789012"));
	assert_false(rdv_fabric_name_ok("123456789012345678901234567890123"));
	assert_false(rdv_fabric_name_ok(""));
	assert_false(rdv_fabric_name_ok("."));
	assert_false(rdv_fabric_name_ok(".hidden"));
	assert_false(rdv_fabric_name_ok("a/b"));
	assert_false(rdv_fabric_name_ok("a b"));
	assert_false(rdv_fabric_name_ok("default-1"));
}

static void node_numbers(void **state)
{
	(void)state;
	assert_int_equal(rdv_node_number(NULL), 0);
	assert_int_equal(rdv_node_number(""), 0);
	assert_int_equal(rdv_node_number("weft0"), 0);
	assert_int_equal(rdv_node_number("0"), 0);
	assert_int_equal(rdv_node_number("007"), 7);
	assert_int_equal(rdv_node_number("65535"), 65535);
	assert_int_equal(rdv_node_number("65536"), -EINVAL);
	assert_int_equal(rdv_node_number("99999999999"), -EINVAL);
	assert_int_equal(rdv_node_number("-1"), -EINVAL);
	assert_int_equal(rdv_node_number(" 1"), -EINVAL);
	assert_int_equal(rdv_node_number("1x"), -EINVAL);
	assert_int_equal(rdv_node_number("mic0"), -EINVAL);
}

static void which_directory(void **state)
{
	char buf[PATH_MAX], want[PATH_MAX];
	char dir[] = "/tmp/weft-test-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("WEFT_RUNTIME_DIR", "/some/where", 1);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	assert_int_equal(rdv_dir_path(buf, sizeof buf), 0);
	assert_string_equal(buf, "/some/where");
	assert_int_equal(rdv_dir_path(buf, 5), -ENAMETOOLONG);
	setenv("WEFT_RUNTIME_DIR", "some/where", 1);
	assert_int_equal(rdv_dir_path(buf, sizeof buf), -EINVAL);
	unsetenv("WEFT_RUNTIME_DIR");
	rdv_dir_path(buf, sizeof buf);
	snprintf(want, sizeof want, "%s/weft", dir);
	assert_string_equal(buf, want);
	setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
	rdv_dir_path(buf, sizeof buf);
	snprintf(want, sizeof want, "/tmp/weft-%u", (unsigned)geteuid());
	assert_string_equal(buf, want);
	rmdir(dir);
}

static void modes(void **state)
{
	char dir[] = "/tmp/weft-test-XXXXXX";
	struct rdv_paths p;

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("WEFT_RUNTIME_DIR", dir, 1);
	for (unsigned bit = 1; bit <= 040; bit <<= 1) {
		assert_int_equal(chmod(dir, 0700 | bit), 0);
		assert_int_equal(rdv_paths_open(&p, "x"), -EACCES);
	}
	assert_int_equal(chmod(dir, 0700), 0);
	assert_int_equal(rdv_paths_open(&p, "x"), 0);
	assert_string_equal(p.name, "x");
	rdv_paths_close(&p);
	assert_int_equal(rdv_paths_open(&p, "default"), 0);
	assert_int_equal(strncmp(p.name, "default-", 8), 0);
	rdv_paths_close(&p);
	assert_int_equal(rdv_paths_open(&p, "x y"), -EINVAL);
	rmdir(dir);
}

static void messages(void **state)
{
	struct proto_msg m = {.op = OP_PING, .version = PROTO_VERSION, .cookie = 9};
	int s[2], fds[PROTO_MAX_FDS + 1] = {0, 0, 0, 0, 0};
	struct proto_in in;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	assert_int_equal(proto_recv(s[1], &in), -EAGAIN);
	assert_int_equal(proto_send(s[0], &m, fds, 2), 0);
	assert_int_equal(proto_recv(s[1], &in), 0);
	assert_int_equal(in.msg.cookie, 9);
	assert_int_equal(in.n_fds, 2);
	close(proto_take_fd(&in, 1));
	assert_int_equal(proto_take_fd(&in, 2), -1);
	proto_close(&in);
	assert_int_equal(proto_send(s[0], &m, fds, PROTO_MAX_FDS + 1), 0);
	assert_int_equal(proto_recv(s[1], &in), -EBADMSG);
	assert_int_equal(in.n_fds, 0);
	m.version++;
	assert_int_equal(proto_send(s[0], &m, NULL, 0), 0);
	assert_int_equal(proto_recv(s[1], &in), -EPROTO);
	assert_true(send(s[0], &m, 3, 0) == 3);
	assert_int_equal(proto_recv(s[1], &in), -EBADMSG);
	close(s[0]);
	assert_int_equal(proto_recv(s[1], &in), -EPIPE);
	assert_int_equal(proto_send(s[1], &m, NULL, 0), -EPIPE);
	close(s[1]);
	assert_int_equal(proto_send(s[1], &m, NULL, 0), -EPIPE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(node_numbers),
		cmocka_unit_test(which_directory),
		cmocka_unit_test(modes),
		cmocka_unit_test(messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
