// SPDX-License-Identifier: BSD-3-Clause
/* Limits, silence, garbage. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdv/admin.h"
#include "rdv/conn.h"
#include "rdv/rdv.h"
#include "tests/prog/rdv/help.h"

enum { HANG_UP_MS = 20000 };

static struct conn raw_connection(void)
{
	struct rdv_paths p;
	struct conn c;

	CHECK_EQ(rdv_paths_open(&p, NULL), 0);
	CHECK_EQ(conn_open(&c, &p), 0);
	rdv_paths_close(&p);
	return c;
}

/* weftd must hang up. */
static bool hung_up(struct conn *c)
{
	struct pollfd pfd = {.fd = c->sock.fd, .events = POLLIN};
	struct proto_in in;
	int ret = -1;

	while (ret != -EPIPE && poll(&pfd, 1, HANG_UP_MS) == 1)
		ret = proto_recv(c->sock.fd, &in);
	conn_close(c);
	return ret == -EPIPE;
}

static bool garbage_ends(const void *bytes, size_t size, const char *counter)
{
	struct conn c = raw_connection();
	long before = status_of(NULL, counter);

	CHECK(send(c.sock.fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
	return hung_up(&c) && status_of(NULL, counter) == before + 1;
}

/* A message of that op with len zeroes and n_fds fds. */
static bool message_ends(uint32_t op, size_t len, int n_fds, const char *counter)
{
	const uint8_t zeroes[PROTO_PAYLOAD_MAX] = {0};
	const int fds[PROTO_MAX_FDS] = {0, 0, 0, 0, 0};
	struct conn c = raw_connection();
	long before = status_of(NULL, counter);
	struct proto_out out = {
		.head = {.op = op, .version = PROTO_VERSION},
		.payload = zeroes,
		.len = len,
		.fds = fds,
		.n_fds = n_fds,
	};

	CHECK_EQ(proto_send(c.sock.fd, &out), 0);
	return hung_up(&c) && status_of(NULL, counter) == before + 1;
}

static int garbage(void)
{
	const struct proto_head old = {.op = OP_PING, .version = PROTO_VERSION + 1};
	struct kid a = kid_start();
	uint8_t big[4096];
	const size_t attach = sizeof(struct proto_attach);
	long qpn = kid_do(&a, DO_LEASE, 0, 0);

	CHECK(qpn > 0);
	memset(big, 0, sizeof big);
	((struct proto_head *)big)->version = PROTO_VERSION;
	CHECK(garbage_ends(big, 1, "refusals.bad_message"));
	CHECK(garbage_ends(big, sizeof(struct proto_head) - 1, "refusals.bad_message"));
	CHECK(garbage_ends(big, sizeof big, "refusals.bad_message"));
	CHECK(garbage_ends(&old, sizeof old, "refusals.bad_version"));
	CHECK(message_ends(0, 0, 0, "refusals.bad_op"));
	CHECK(message_ends(OP_COUNT, 0, 0, "refusals.bad_op"));
	CHECK(message_ends(~0u, 0, 0, "refusals.bad_op"));
	CHECK(message_ends(OP_ATTACH, attach, 0, "refusals.bad_fds"));
	CHECK(message_ends(OP_PING, 0, 4, "refusals.bad_fds"));
	CHECK(message_ends(OP_LEASE, 0, 0, "refusals.not_attached"));
	/* Payloads of another size than the op's. */
	CHECK(message_ends(OP_ATTACH, attach - 1, 1, "refusals.bad_message"));
	CHECK(message_ends(OP_ATTACH, attach + 1, 1, "refusals.bad_message"));
	CHECK(logged("bad_message: attach of 33 bytes, not 32 to 32"));
	CHECK(message_ends(OP_PING, 1, 0, "refusals.bad_message"));
	CHECK(message_ends(OP_CM_BIND, PROTO_CM_BIND + 1, 0, "refusals.bad_message"));
	CHECK(logged("bad_message: cm_bind of 37 bytes, not 36 to 36"));
	/* Private data of another length than the call says. */
	CHECK(message_ends(OP_CM_REJECT, PROTO_CM_REJECT + 1, 0, "refusals.bad_message"));
	CHECK(logged("bad_message: cm_reject of 9 bytes, not 8 as it says"));
	CHECK(message_ends(OP_CM_REJECT, PROTO_CM_REJECT - 1, 0, "refusals.bad_message"));
	CHECK(message_ends(
		OP_CM_CONNECT, PROTO_CM_CONNECT + PROTO_CM_PRIVATE + 1, 0, "refusals.bad_message"));
	CHECK_EQ(kid_do(&a, DO_FIND, qpn, 0), kid_do(&a, ASK_ID, 0, 0));
	kid_end(&a, 0);
	CHECK(all_zero(NULL));
	return 0;
}

static int call_with(struct conn *c, uint32_t op, const void *payload, const int *fds, int n_fds)
{
	struct proto_out out = proto_call(op, payload);
	struct proto_in in;
	int ret;

	out.fds = fds;
	out.n_fds = n_fds;
	ret = conn_call(c, &out, &in);
	if (!ret)
		proto_close(&in);
	return ret;
}

/* Calls that make sense, with arguments that do not. */
static int nonsense(void)
{
	const struct proto_timer timer = {.attach_id = 77};
	struct proto_out set_timer = proto_call(OP_SET_TIMER, &timer);
	const struct proto_channel channel = {.id = 1};
	const struct proto_backing backing = {.id = 1}, none = {.id = 0};
	struct proto_attach attach = {.flags = PROTO_AGAIN, .attach_id = 99};
	const struct proto_block claim = {.first_qpn = ~0u};
	int ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), pipe_fds[2];
	int memfd = memfd_create("open", MFD_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct kid a = kid_start();
	long id = kid_do(&a, ASK_ID, 0, 0);
	struct conn c = raw_connection();
	int fds[3] = {ns, ns, ns};

	CHECK_EQ(pipe(pipe_fds), 0);
	CHECK(call_with(&c, OP_ATTACH, &attach, fds, 1) == -ESTALE);
	CHECK(call_with(&c, OP_ATTACH, &attach, fds, 3) == -EPROTO);
	attach.attach_id = id; /* somebody else */
	CHECK(call_with(&c, OP_ATTACH, &attach, fds, 1) == -EEXIST);
	attach.flags = 0;
	attach.node = 1; /* without a topology all numbers are weft0 */
	CHECK_EQ(call_with(&c, OP_ATTACH, &attach, fds, 1), 0);
	CHECK(call_with(&c, OP_ADD_CHANNEL, &channel, &pipe_fds[1], 1) == -EINVAL);
	CHECK(call_with(&c, OP_ADD_CHANNEL, &channel, &memfd, 1) == -EINVAL);
	CHECK(call_with(&c, OP_ADD_BACKING, &backing, &pipe_fds[1], 1) == -EINVAL);
	CHECK(call_with(&c, OP_ADD_BACKING, &backing, &null, 1) == -EINVAL);
	CHECK(call_with(&c, OP_ADD_BACKING, &none, &memfd, 1) == -EINVAL);
	CHECK_EQ(call_with(&c, OP_DEL_BACKING, &backing, NULL, 0), -ENOENT);
	CHECK_EQ(call_with(&c, OP_ADD_BACKING, &backing, &memfd, 1),
		0); /* who maps it looks at its seals */
	/* The same number of a channel is another thing: nobody writes the file. */
	CHECK_EQ(call_with(&c, OP_DEL_CHANNEL, &channel, NULL, 0), -ENOENT);
	CHECK(status_becomes(NULL, "counts.channels", 0));
	CHECK_EQ(call_with(&c, OP_DEL_BACKING, &backing, NULL, 0), 0);
	CHECK(call_with(&c, OP_CLAIM, &claim, NULL, 0) == -EINVAL);
	CHECK_EQ(conn_post(&c, &set_timer), 0);
	CHECK(status_becomes(NULL, "refusals.unknown_peer", 1));
	conn_close(&c);
	kid_end(&a, 0);
	return 0;
}

/* Who wants no reply gets no fds either: weftd must not keep what it made for one. */
static int no_reply(void)
{
	const struct proto_umad_open file = {.device = "weft0", .port = 1, .flags = PROTO_WAIT};
	struct proto_out call[] = {proto_call(OP_STATUS, NULL), proto_call(OP_UMAD_OPEN, &file),
		proto_call(OP_ISSM_OPEN, &file)};
	struct conn c;

	CHECK_EQ(rdv_start(NULL, false, NULL), 0);
	c = raw_connection();
	for (size_t i = 0; i < sizeof call / sizeof *call; i++)
		CHECK_EQ(conn_post(&c, &call[i]), 0);
	CHECK_EQ(call_with(&c, OP_PING, NULL, NULL, 0), 0);
	conn_close(&c);
	CHECK(status_becomes(NULL, "umad.files", 0));
	CHECK(status_becomes(NULL, "counts.fds", 0));
	return 0;
}

static int add_event_channel(struct conn *c, uint32_t id, int fd)
{
	const struct proto_channel call = {.id = id};

	return call_with(c, OP_CM_ADD_CHANNEL, &call, &fd, 1);
}

static int named_socket(const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof addr.sun_path, "%s", name);
	CHECK_EQ(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
	return fd;
}

/* Of the names that a socket may come with, weftd takes the one that it would give it. */
static int channel_names(void)
{
	const struct proto_attach attach = {.pid = 0};
	int ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t len = sizeof addr - 1;
	struct conn c;

	CHECK_EQ(rdv_start(NULL, false, NULL), 0);
	c = raw_connection();
	CHECK_EQ(call_with(&c, OP_ATTACH, &attach, &ns, 1), 0);
	CHECK_EQ(add_event_channel(&c, 1, ns), -EINVAL);
	CHECK_EQ(add_event_channel(&c, 1, socket(AF_UNIX, SOCK_STREAM, 0)), -EINVAL);
	CHECK_EQ(add_event_channel(&c, 1, socket(AF_INET, SOCK_DGRAM, 0)), -EINVAL);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(add_event_channel(&c, 1, fd), 0);
	CHECK_EQ(add_event_channel(&c, 1, fd), -EEXIST);
	CHECK_EQ(add_event_channel(&c, 2, fd), -EINVAL); /* it is the other's */
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	CHECK_EQ(chdir(run_dir), 0);
	strcat(addr.sun_path, "0");
	CHECK_EQ(add_event_channel(&c, 2, named_socket(addr.sun_path)), -EINVAL);
	CHECK_EQ(add_event_channel(&c, 2, named_socket("elsewhere")), -EINVAL);
	conn_close(&c);
	return 0;
}

/* Somebody who asks and never reads is dropped; the others do not notice. */
static int not_reading(void)
{
	struct proto_out ping = {.head = {.op = OP_PING, .version = PROTO_VERSION, .cookie = 1}};
	struct conn c;
	int ret = 0;

	CHECK_EQ(rdv_start(NULL, false, NULL), 0);
	c = raw_connection();
	for (double end = seconds() + 20; ret != -EPIPE && seconds() < end;) {
		ret = proto_send(c.sock.fd, &ping);
		if (ret == -EAGAIN)
			usleep(100);
	}
	CHECK_EQ(ret, -EPIPE);
	CHECK_EQ(status_of(NULL, "refusals.not_reading"), 1);
	conn_close(&c);
	return 0;
}

static int stopped_weftd(void)
{
	struct kid a = kid_start();
	double t;
	pid_t pid;

	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	pid = weftd_pid(NULL);
	CHECK(pid > 0 && kill(pid, SIGSTOP) == 0);
	t = seconds();
	CHECK_EQ(kid_do(&a, DO_LEASE, 0, 0), -ETIMEDOUT);
	t = seconds() - t;
	kill(pid, SIGCONT);
	CHECK(t > 4.5 && t < 20);
	CHECK(logged("does not answer; is it stopped?"));
	CHECK(kid_do(&a, DO_LEASE, 0, 0) > 0); /* not fooled by the late reply */
	kid_end(&a, 0);
	CHECK(all_zero(NULL));
	return 0;
}

static int attach_to_stopped(void)
{
	struct kid a = kid_start();
	double t = seconds();
	int32_t pid;

	CHECK_EQ(rdv_start(NULL, false, &pid), 0);
	CHECK_EQ(kill(pid, SIGSTOP), 0);
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), -ETIMEDOUT);
	kill(pid, SIGCONT);
	CHECK(seconds() - t < 25);
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	kid_end(&a, 0);
	return 0;
}

/* ulimit -f 0 must not bite a client: it grows no file.  The default SIGXFSZ would kill it. */
static int limit_of_file_size(void)
{
	struct kid a = kid_start(), b = kid_start();
	long qpn;

	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	CHECK_EQ(kid_do(&a, DO_LIMIT_FSIZE, 0, 0), 0);
	CHECK_EQ(kid_do(&a, DO_ATTACH, 0, 0), 0);
	qpn = kid_do(&a, DO_LEASE, 0, 0);
	CHECK(qpn > 0 && kid_do(&b, DO_FIND, qpn, 0) > 0);
	kid_end(&a, 0);
	kid_end(&b, 0);
	return 0;
}

/* A weftd that inherits the limit either may lift it or says what is wrong. */
static int limit_inherited(void)
{
	struct kid a;
	long ret;

	setenv("WEFT_LOG", "error", 1); /* a log file is a file, too */
	a = kid_start();
	CHECK_EQ(kid_do(&a, DO_LIMIT_FSIZE, 0, 0), 0);
	ret = kid_do(&a, DO_ATTACH, 0, 0);
	CHECK(ret == 0 || ret == -ENOTCONN);
	kid_end(&a, 0);
	return 0;
}

static int limit_of_fds(void)
{
	struct kid a = kid_start(), b = kid_start();
	long qpn = kid_do(&a, DO_LEASE, 0, 0);

	CHECK(qpn > 0);
	CHECK_EQ(kid_do(&b, DO_LIMIT_FDS, 5, 0), 0);
	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), -EMFILE);
	CHECK_EQ(kid_do(&b, DO_LIMIT_FDS, 64, 0), 0);
	CHECK_EQ(kid_do(&b, DO_ATTACH, 0, 0), 0);
	CHECK_EQ(kid_do(&b, DO_LIMIT_FDS, 6, 0), 0);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), -EMFILE);
	CHECK_EQ(kid_do(&b, DO_LIMIT_FDS, 64, 0), 0);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), kid_do(&a, ASK_ID, 0, 0));
	kid_end(&a, 0);
	kid_end(&b, 0);
	CHECK(all_zero(NULL));
	return 0;
}

/* Started from a shell with ulimit -n: a privileged weftd lifts that. */
static int limit_of_fds_lifted(void)
{
	struct rlimit rl;
	int32_t pid;

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64}), 0);
	CHECK_EQ(rdv_start(NULL, false, &pid), 0);
	CHECK_EQ(prlimit(pid, RLIMIT_NOFILE, NULL, &rl), 0);
	CHECK_EQ(rl.rlim_cur, rl.rlim_max);
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){65536, 65536}) < 0) {
		printf("raising a hard limit takes CAP_SYS_RESOURCE\n");
		return SKIP;
	}
	return rl.rlim_max < 65536;
}

/* If it cannot, the client says what is wrong: room for the connection, none for a segment. */
static int limit_of_fds_told(void)
{
	const struct rdv_attach *at;
	char path[64];
	int32_t pid;
	int n = 3;

	CHECK_EQ(rdv_start(NULL, false, &pid), 0);
	while (snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, n) > 0 && access(path, F_OK) == 0)
		n++;
	CHECK_EQ(prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){n + 2, n + 2}, NULL), 0);
	CHECK_EQ(rdv_attach(&at), -EMFILE);
	CHECK(logged("ran out of file descriptors: it was started under a limit"));
	return 0;
}

/* weftd itself runs out: it refuses, does not spin, and recovers. */
static int weftd_out_of_fds(void)
{
	struct rlimit rl;
	struct conn c[64];
	struct rdv_paths p;
	int32_t pid;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &rl), 0);
	CHECK_EQ(rdv_start(NULL, false, &pid), 0);
	CHECK_EQ(prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){32, rl.rlim_max}, NULL), 0);
	CHECK_EQ(rdv_paths_open(&p, NULL), 0);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(conn_open(&c[i], &p), 0);
	CHECK(rdv_ping(NULL, NULL) < 0);
	for (int i = 0; i < 64; i++)
		conn_close(&c[i]);
	CHECK_EQ(prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){1024, rl.rlim_max}, NULL), 0);
	CHECK(status_of(NULL, "refusals.no_fds") > 0);
	CHECK(status_becomes(NULL, "counts.fds", 0));
	return 0;
}

static int wrong_dir(void)
{
	const struct rdv_attach *at;
	char other[96];

	snprintf(other, sizeof other, "%s/d", run_dir);
	CHECK_EQ(mkdir(other, 0755), 0);
	CHECK_EQ(chmod(other, 0755), 0); /* whatever the umask */
	setenv("WEFT_RUNTIME_DIR", other, 1);
	CHECK_EQ(rdv_attach(&at), -EACCES);
	CHECK(logged("is open to other users; set WEFT_RUNTIME_DIR to a directory of your own, of "
		     "mode 700"));
	CHECK_EQ(chmod(other, 0700), 0);
	snprintf(other, sizeof other, "%s/l", run_dir);
	CHECK_EQ(symlink("d", other), 0);
	setenv("WEFT_RUNTIME_DIR", other, 1);
	CHECK_EQ(rdv_attach(&at), -EACCES);
	CHECK(logged("is a symbolic link; set WEFT_RUNTIME_DIR to a directory of your own"));
	snprintf(other, sizeof other, "%s/f", run_dir);
	close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	setenv("WEFT_RUNTIME_DIR", other, 1);
	CHECK_EQ(rdv_attach(&at), -EACCES);
	setenv("WEFT_RUNTIME_DIR", "d", 1);
	CHECK_EQ(rdv_attach(&at), -EINVAL);
	CHECK(logged("WEFT_RUNTIME_DIR=d is relative; set it to a path that begins with /"));
	snprintf(other, sizeof other, "%s/none/none", run_dir);
	setenv("WEFT_RUNTIME_DIR", other, 1);
	CHECK_EQ(rdv_attach(&at), -ENOENT);
	setenv("WEFT_RUNTIME_DIR", run_dir, 1);
	CHECK_EQ(rdv_attach(&at), 0);
	return 0;
}

/* Deeper than a socket address can say. */
static int long_path(void)
{
	const struct rdv_attach *at;
	char deep[300];

	snprintf(deep, sizeof deep, "%s/%0100d", run_dir, 1);
	CHECK_EQ(mkdir(deep, 0700), 0);
	snprintf(deep, sizeof deep, "%s/%0100d/%0100d", run_dir, 1, 2);
	setenv("WEFT_RUNTIME_DIR", deep, 1);
	CHECK_EQ(rdv_attach(&at), 0);
	CHECK_EQ(rdv_shutdown(NULL), 0);
	return 0;
}

const struct test_case hostile_cases[] = {
	{"garbage", garbage},
	{"nonsense", nonsense},
	{"no_reply", no_reply},
	{"channel_names", channel_names},
	{"not_reading", not_reading},
	{"stopped_weftd", stopped_weftd},
	{"attach_to_stopped", attach_to_stopped},
	{"limit_of_file_size", limit_of_file_size},
	{"limit_inherited", limit_inherited},
	{"limit_of_fds", limit_of_fds},
	{"limit_of_fds_lifted", limit_of_fds_lifted},
	{"limit_of_fds_told", limit_of_fds_told},
	{"weftd_out_of_fds", weftd_out_of_fds},
	{"wrong_dir", wrong_dir},
	{"long_path", long_path},
	{NULL, NULL},
};
