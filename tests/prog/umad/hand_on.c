// SPDX-License-Identifier: BSD-3-Clause
/* A umad file in several processes: dup, fork, exec, SCM_RIGHTS, and the last close. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdv/umad_line.h"
#include "tests/prog/umad/help.h"

enum { SHARED_MADS = 2000, FDS = 1 << 16 };

/* A file that sends to itself: an agent that sends, and one that gets it. */
struct both {
	int fd;
	uint32_t sender, server;
};

static struct both open_both(int flags)
{
	struct both b = {.fd = open_file(flags)};

	b.sender = add_sender(b.fd, 0);
	b.server = add_agent(b.fd, CLASS, 0);
	return b;
}

static void send_tid(const struct both *b, uint32_t tid)
{
	struct packet p = request(b->sender, CLASS, tid);

	put(b->fd, &p);
}

static void get_tid(int fd, uint32_t tid)
{
	struct packet p;

	get(fd, &p);
	T_EQUAL(low_tid(&p), tid);
}

static void duplicate(void)
{
	struct both b = open_both(0);
	int second = T_SYS(dup(b.fd));

	send_tid(&b, 1);
	get_tid(second, 1);
	T_SYS(close(b.fd));
	b.fd = second;
	send_tid(&b, 2);
	get_tid(second, 2);
	T_EQUAL(umad_status("files"), 1);
	T_EQUAL(umad_status("lanes"), 1);
	T_SYS(close(second));
	await_status("files", 0);
	T_EQUAL(umad_status("lanes"), 0);
}

static void child_uses(int in, int out, void *arg)
{
	struct both *b = arg;

	(void)in;
	get_tid(b->fd, 1);
	send_tid(b, 2);
	t_signal(out);
}

/* The child has the parent's file and agents, and a lane of its own. */
static void forked(void)
{
	struct both b = open_both(0);
	struct t_child child;

	send_tid(&b, 1);
	t_fork(&child, child_uses, &b);
	t_await(child.from);
	get_tid(b.fd, 2);
	T_EQUAL(t_wait(&child), 0);
	await_status("lanes", 1);
	T_EQUAL(umad_status("files"), 1);
	send_tid(&b, 3);
	get_tid(b.fd, 3);
}

/* Reads what comes until the one that ends it; tells how many. */
static void read_some(int in, int out, void *arg)
{
	const struct both *b = arg;
	uint32_t n = 0;
	struct packet p;

	(void)in;
	for (;;) {
		T_EQUAL(umad_file_read(b->fd, &p, sizeof p), sizeof p);
		if (low_tid(&p) >= SHARED_MADS)
			break;
		n++;
	}
	t_tell(out, &n, sizeof n);
}

/* Each MAD is read once, by one of two blocking readers. */
static void shared_readers(void)
{
	struct both b = open_both(0);
	struct t_child reader[2];
	uint32_t n[2];

	for (int i = 0; i < 2; i++)
		t_fork(&reader[i], read_some, &b);
	for (uint32_t tid = 0; tid < SHARED_MADS + 2; tid++)
		send_tid(&b, tid);
	for (int i = 0; i < 2; i++)
		t_hear(reader[i].from, &n[i], sizeof n[i]);
	T_EQUAL(n[0] + n[1], SHARED_MADS);
	for (int i = 0; i < 2; i++)
		T_EQUAL(t_wait(&reader[i]), 0);
	quiet(b.fd);
}

static void read_after_exec(void)
{
	struct both b = open_both(0);
	struct t_child child;
	struct packet p;
	char number[16];

	snprintf(number, sizeof number, "%d", b.fd);
	send_tid(&b, 7);
	t_exec(&child, (char *[]){"/proc/self/exe", "--read", number, NULL});
	t_hear(child.from, &p, sizeof p);
	T_EQUAL(low_tid(&p), 7);
	T_EQUAL(t_wait(&child), 0);
	quiet(b.fd);
}

/* What a daemon does to fds that it does not know of: weftd hears of it, and is asked again. */
static void closed_behind(void)
{
	struct both b = open_both(O_NONBLOCK);
	int mine = T_SYS(fcntl(b.fd, F_DUPFD, 3));

	send_tid(&b, 1);
	get_tid(b.fd, 1);
	for (int fd = 3; fd < (int)sysconf(_SC_OPEN_MAX) && fd < FDS; fd++)
		if (fd != b.fd && fd != mine)
			close(fd);
	await_status("lanes", 0);
	send_tid(&b, 2);
	get_tid(mine, 2);
	T_EQUAL(umad_status("lanes"), 1);
	T_EQUAL(add_sender(mine, 0), 2);
}

/* ---- SCM_RIGHTS ---- */

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static void send_fd(int sock, int fd)
{
	union control c = {.head = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {"", 1};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};

	memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
	T_SYS(sendmsg(sock, &m, 0));
}

static int receive_fd(int sock)
{
	char byte;
	union control c;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
	int fd;

	T_SYS(recvmsg(sock, &m, 0));
	memcpy(&fd, CMSG_DATA(&c.head), sizeof fd);
	return fd;
}

/* Opens a file, passes it on and closes it. */
static void pass_on(int in, int out, void *arg)
{
	struct both b = open_both(0);

	(void)out;
	send_fd(*(int *)arg, b.fd);
	T_SYS(close(b.fd));
	t_await(in);
}

static void passed(void)
{
	struct both b = {.sender = 0, .server = 1};
	struct t_child child;
	int pair[2];

	T_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	t_fork(&child, pass_on, &pair[1]);
	b.fd = receive_fd(pair[0]);
	send_tid(&b, 1);
	get_tid(b.fd, 1);
	t_kill(&child);
	await_status("lanes", 1);
	send_tid(&b, 2);
	get_tid(b.fd, 2);
	quiet(b.fd);
}

/* Who has a connection to a weftd that is gone takes a file of its successor. */
static void passed_anew(void)
{
	struct both old = open_both(0), b = {.sender = 0, .server = 1};
	struct t_child child;
	int pair[2];

	kill_weftd();
	T_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	t_fork(&child, pass_on, &pair[1]);
	b.fd = receive_fd(pair[0]);
	T_EQUAL(umad_file_wait(b.fd, 0), -ETIMEDOUT);
	send_tid(&b, 1);
	get_tid(b.fd, 1);
	T_EQUAL(umad_file_register(old.fd, &(struct umad_agent){.qpn = 1}), -EPIPE);
	t_kill(&child);
}

/* ---- lanes ---- */

enum { THREADS = 32, LANES = 16 };

struct threads {
	const struct both *b;
	pthread_barrier_t start;
};

static void *use_at_once(void *arg)
{
	struct threads *t = arg;

	pthread_barrier_wait(&t->start);
	T_EQUAL(umad_file_wait(t->b->fd, 0), -ETIMEDOUT);
	return NULL;
}

static void child_threads(int in, int out, void *arg)
{
	struct threads t = {.b = arg};
	pthread_t thread[THREADS];

	T_OK(pthread_barrier_init(&t.start, NULL, THREADS));
	for (int i = 0; i < THREADS; i++)
		T_OK(pthread_create(&thread[i], NULL, use_at_once, &t));
	for (int i = 0; i < THREADS; i++)
		T_OK(pthread_join(thread[i], NULL));
	t_signal(out);
	t_await(in);
}

/* Threads that find a file in the same moment ask for one lane. */
static void threads_join(void)
{
	struct both b = open_both(0);
	struct t_child child;

	t_fork(&child, child_threads, &b);
	t_await(child.from);
	T_EQUAL(umad_status("lanes"), 2);
	t_signal(child.to);
	T_EQUAL(t_wait(&child), 0);
}

static int join(int fd)
{
	struct proto_out call = proto_call(OP_UMAD_JOIN, NULL);
	struct proto_in in;
	int ret;

	call.fds = &fd;
	call.n_fds = 1;
	ret = umad_line_call(&call, &in, false);
	if (!ret)
		proto_close(&in);
	return ret;
}

/* Who asks for lane after lane is refused: the end of many takes weftd's time. */
static void lanes_of_one(void)
{
	struct both b = open_both(0);

	for (int n = 1; n < LANES; n++)
		T_OK(join(b.fd));
	T_EQUAL(join(b.fd), -EMFILE);
	send_tid(&b, 1);
	get_tid(b.fd, 1);
}

/* ---- the last close ---- */

static void wait_for_ever(int in, int out, void *arg)
{
	struct both b = open_both(0);
	struct packet p;

	(void)in;
	(void)arg;
	t_signal(out);
	(void)umad_file_read(b.fd, &p, sizeof p);
}

static void killed(void)
{
	int fd = open_file(0);
	struct umad_agent a = {
		.qpn = 1, .mgmt_class = CLASS, .class_version = 1, .method_mask = {1 << METHOD}};
	struct t_child child;

	t_fork(&child, wait_for_ever, NULL);
	t_await(child.from);
	T_EQUAL(umad_file_register(fd, &a), -EINVAL);
	t_kill(&child);
	await_status("files", 1);
	T_OK(umad_file_register(fd, &a));
}

static void read_for_ever(int in, int out, void *arg)
{
	struct packet p;

	(void)in;
	(void)out;
	for (;;)
		(void)umad_file_read(((struct both *)arg)->fd, &p, sizeof p);
}

/* One of two readers dies again and again: the other misses nothing that comes after. */
static void killed_readers(void)
{
	struct both b = open_both(O_NONBLOCK);
	struct t_child child;

	for (uint32_t round = 0; round < 10; round++) {
		t_fork(&child, read_for_ever, &b);
		for (uint32_t i = 0; i < 200; i++)
			send_tid(&b, i);
		t_kill(&child);
		await_status("lanes", 1);
		for (struct packet p; umad_file_wait(b.fd, 20) == 0;)
			T_EQUAL(umad_file_read(b.fd, &p, sizeof p), sizeof p);
		quiet(b.fd);
		send_tid(&b, 1000);
		get_tid(b.fd, 1000);
		quiet(b.fd);
	}
}

const struct test_case hand_on_cases[] = {
	{"duplicate", duplicate},
	{"forked", forked},
	{"shared_readers", shared_readers},
	{"read_after_exec", read_after_exec},
	{"closed_behind", closed_behind},
	{"passed", passed},
	{"passed_anew", passed_anew},
	{"threads_join", threads_join},
	{"lanes_of_one", lanes_of_one},
	{"killed", killed},
	{"killed_readers", killed_readers},
	{0},
};
