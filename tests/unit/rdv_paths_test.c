// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
	assert_int_equal(strncmp(buf, "/tmp/weft-", strlen("/tmp/weft-")), 0);
	rmdir(dir);
}

enum { INSIDE = 7, NO_NAMESPACES = 77 };

/* Becomes user INSIDE of a user namespace; false: such are not to be had here. */
static bool enter_user_namespace(void)
{
	char map[32];
	int n = snprintf(map, sizeof map, "%d %u 1", INSIDE, (unsigned)geteuid()), fd;

	if (unshare(CLONE_NEWUSER) < 0)
		return false;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, map, n) == n && geteuid() == INSIDE;
}

/* Who is root by unshare -r has the same directory as outside, not that of the machine's root. */
static void directory_in_user_namespace(void **state)
{
	char buf[PATH_MAX], want[PATH_MAX];
	int status;
	pid_t pid;

	(void)state;
	unsetenv("WEFT_RUNTIME_DIR");
	unsetenv("XDG_RUNTIME_DIR");
	snprintf(want, sizeof want, "/tmp/weft-%u", (unsigned)geteuid());
	pid = fork();
	if (pid == 0) {
		if (!enter_user_namespace())
			_exit(NO_NAMESPACES);
		_exit(rdv_dir_path(buf, sizeof buf) || strcmp(buf, want) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_NAMESPACES)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
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
	int s[2], fds[PROTO_MAX_FDS + 1] = {0, 0, 0, 0, 0};
	const struct proto_find find = {.qpn = 17, .attach_id = 4};
	struct proto_out m = proto_call(OP_FIND_QPN, &find);
	uint8_t most[PROTO_PAYLOAD_MAX + 1] = {0};
	struct proto_in in;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	assert_int_equal(proto_recv(s[1], &in), -EAGAIN);
	m.head.version = PROTO_VERSION;
	m.head.cookie = 9;
	m.fds = fds;
	m.n_fds = 2;
	assert_int_equal(proto_send(s[0], &m), 0);
	assert_int_equal(proto_recv(s[1], &in), 0);
	assert_int_equal(in.head.cookie, 9);
	assert_int_equal(in.len, sizeof find);
	assert_memory_equal(&in.payload, &find, sizeof find);
	assert_int_equal(in.n_fds, 2);
	close(proto_take_fd(&in, 1));
	assert_int_equal(proto_take_fd(&in, 2), -1);
	proto_close(&in);
	m.n_fds = PROTO_MAX_FDS + 1;
	assert_int_equal(proto_send(s[0], &m), 0);
	assert_int_equal(proto_recv(s[1], &in), -EBADMSG);
	assert_int_equal(in.n_fds, 0);
	m.n_fds = 0;
	m.payload = most;
	m.len = PROTO_PAYLOAD_MAX;
	assert_int_equal(proto_send(s[0], &m), 0);
	assert_int_equal(proto_recv(s[1], &in), 0);
	m.len++;
	assert_int_equal(proto_send(s[0], &m), 0);
	assert_int_equal(proto_recv(s[1], &in), -EBADMSG);
	m.len = 0;
	m.head.version++;
	assert_int_equal(proto_send(s[0], &m), 0);
	assert_int_equal(proto_recv(s[1], &in), -EPROTO);
	assert_true(send(s[0], &m, 3, 0) == 3);
	assert_int_equal(proto_recv(s[1], &in), -EBADMSG);
	close(s[0]);
	assert_int_equal(proto_recv(s[1], &in), -EPIPE);
	assert_int_equal(proto_send(s[1], &m), -EPIPE);
	close(s[1]);
	assert_int_equal(proto_send(s[1], &m), -EPIPE);
}

/* Every op has a row, and its calls and replies fit into what is received. */
static void ops(void **state)
{
	(void)state;
	assert_null(proto_op(0));
	assert_null(proto_op(OP_COUNT));
	assert_null(proto_op(UINT32_MAX));
	for (uint32_t i = 1; i < OP_COUNT; i++) {
		const struct proto_op *op = proto_op(i);
		const struct proto_shape *shapes[2];

		assert_non_null(op);
		shapes[0] = &op->call;
		shapes[1] = &op->reply;
		for (int k = 0; k < 2; k++) {
			assert_true(shapes[k]->least <= shapes[k]->most);
			assert_true(shapes[k]->most <= PROTO_PAYLOAD_MAX);
			assert_true(shapes[k]->least_fds <= shapes[k]->most_fds);
			assert_true(shapes[k]->most_fds <= PROTO_MAX_FDS);
			assert_true(proto_size_fits(shapes[k], shapes[k]->least));
			assert_false(proto_size_fits(shapes[k], shapes[k]->most + 1));
			assert_false(proto_fds_fit(shapes[k], shapes[k]->most_fds + 1));
		}
		/* weftd sends replies of one size. */
		assert_int_equal(op->reply.least, op->reply.most);
	}
	assert_false(proto_size_fits(&proto_op(OP_ATTACH)->call, sizeof(struct proto_attach) - 1));
	assert_false(proto_fds_fit(&proto_op(OP_ATTACH)->call, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(node_numbers),
		cmocka_unit_test(which_directory),
		cmocka_unit_test(directory_in_user_namespace),
		cmocka_unit_test(modes),
		cmocka_unit_test(messages),
		cmocka_unit_test(ops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
