// SPDX-License-Identifier: BSD-3-Clause
/*
 * The failure paths of the document's samples (examples/ti): what each answers when an operation
 * fails, and that the clean-up which it does then succeeds, in its order.  Both ends are in this
 * process; their operations vector is one that can fail.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"

#include "talk.h"

enum { WAIT_MS = 20000, CALLS = 1024, TEXT = 16384, TAIL = 120 };

/* ---- an operations vector that can fail ---- */

static struct {
	pthread_mutex_t lock;
	struct {
		pid_t thread;
		const char *op;
		ti_status_t status;
	} of[CALLS]; /* that returned, in order */
	unsigned n;
	const char *fails;
	unsigned after; /* so many calls of it that do not */
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER, .fails = ""};

static ti_ops_t *real, vector;

/* From now on; NULL: none. */
static void fail(const char *op, unsigned after)
{
	pthread_mutex_lock(&calls.lock);
	calls.n = 0;
	calls.fails = op ? op : "";
	calls.after = after;
	pthread_mutex_unlock(&calls.lock);
}

static bool fails(const char *op)
{
	bool does;

	pthread_mutex_lock(&calls.lock);
	does = !strcmp(calls.fails, op) && calls.after-- == 0;
	if (does)
		calls.fails = "";
	pthread_mutex_unlock(&calls.lock);
	return does;
}

static ti_status_t note(const char *op, ti_status_t st)
{
	pthread_mutex_lock(&calls.lock);
	if (calls.n == CALLS)
		die("too many calls");
	calls.of[calls.n].thread = gettid();
	calls.of[calls.n].op = op;
	calls.of[calls.n++].status = st;
	pthread_mutex_unlock(&calls.lock);
	return st;
}

#define MAY_FAIL(name, params, args)                                                               \
	static ti_status_t name##_or_not params                                                    \
	{                                                                                          \
		return note(#name, fails(#name) ? TI_ERROR : real->name args);                     \
	}

MAY_FAIL(events_register, (const void *context, ti_event_cb_t cb), (context, cb))
MAY_FAIL(create_ti, (ti_handle_t * ph), (ph))
MAY_FAIL(create_endpoint,
	(ti_handle_t h, ti_inet_addr_t *addr, ti_port_t port, ti_endpoint_handle_t *ph),
	(h, addr, port, ph))
MAY_FAIL(destroy_endpoint, (ti_endpoint_handle_t h), (h))
MAY_FAIL(create_pd, (ti_handle_t h, ti_endpoint_handle_t ep, ti_pd_handle_t *ph), (h, ep, ph))
MAY_FAIL(create_cq, (ti_handle_t h, ti_pd_handle_t pd, uint32_t n, ti_cq_handle_t *ph),
	(h, pd, n, ph))
MAY_FAIL(destroy_cq, (ti_cq_handle_t h), (h))
MAY_FAIL(connect,
	(ti_handle_t h, ti_conn_attr_t *attr, ti_conn_info_t *info, ti_conn_request_t *req,
		ti_conn_handle_t *ph),
	(h, attr, info, req, ph))
MAY_FAIL(reject, (ti_conn_request_t * req), (req))
MAY_FAIL(listen,
	(ti_handle_t h, ti_conn_attr_t *attr, ti_conn_info_t *info, ti_conn_request_t *req,
		ti_conn_handle_t *ph),
	(h, attr, info, req, ph))
MAY_FAIL(res_pool_create,
	(ti_handle_t h, ti_res_pool_type_t type, uint32_t n, uint32_t bufs, uint32_t *sizes,
		uint32_t context_size, ti_res_pool_handle_t *ph),
	(h, type, n, bufs, sizes, context_size, ph))
MAY_FAIL(res_pool_destroy, (ti_res_pool_handle_t h), (h))
MAY_FAIL(res_pool_get,
	(ti_res_pool_handle_t h, uint32_t n, boolean_t partial, ti_res_pool_cb_t cb, void *context1,
		void *context2, ti_pool_response_t *resp),
	(h, n, partial, cb, context1, context2, resp))
MAY_FAIL(res_pool_put, (ti_res_pool_handle_t h, ti_data_element_t *list), (h, list))
MAY_FAIL(msg_send, (ti_conn_handle_t h, ti_data_element_t *list), (h, list))
MAY_FAIL(msg_recv, (ti_conn_handle_t h, ti_data_element_t *list), (h, list))

/* It fails as it would by itself: with its receives given back. */
static ti_status_t accept_or_not(ti_conn_request_t *req, uint32_t max_rdma_size,
	ti_comp_info_t *comp, ti_data_element_t *list)
{
	ti_comp_info_t other = *comp;

	if (fails("accept"))
		other.h_send_cq = other.h_recv_cq = NULL;
	return note("accept", real->accept(req, max_rdma_size, &other, list));
}

static void use_vector(void)
{
	real = ti_ops;
	vector = *real;
	vector.events_register = events_register_or_not;
	vector.create_ti = create_ti_or_not;
	vector.create_endpoint = create_endpoint_or_not;
	vector.destroy_endpoint = destroy_endpoint_or_not;
	vector.create_pd = create_pd_or_not;
	vector.create_cq = create_cq_or_not;
	vector.destroy_cq = destroy_cq_or_not;
	vector.connect = connect_or_not;
	vector.accept = accept_or_not;
	vector.reject = reject_or_not;
	vector.listen = listen_or_not;
	vector.res_pool_create = res_pool_create_or_not;
	vector.res_pool_destroy = res_pool_destroy_or_not;
	vector.res_pool_get = res_pool_get_or_not;
	vector.res_pool_put = res_pool_put_or_not;
	vector.msg_send = msg_send_or_not;
	vector.msg_recv = msg_recv_or_not;
	ti_ops = &vector;
}

/* " name" of each call of that thread, " name=STATUS" of one without success.  Under the lock. */
static void write_calls(pid_t thread, char text[TEXT])
{
	size_t at = 0;

	for (unsigned i = 0; i < calls.n; i++)
		if (calls.of[i].thread == thread && at < TEXT)
			at += snprintf(text + at, TEXT - at, calls.of[i].status ? " %s=%d" : " %s",
				calls.of[i].op, calls.of[i].status);
	if (at < TEXT)
		snprintf(text + at, TEXT - at, " ");
}

/* A thread made these calls, one after the other. */
static void check_calls(const char *what)
{
	char text[TEXT] = "";
	bool ok = false;
	size_t len;

	pthread_mutex_lock(&calls.lock);
	for (unsigned i = 0; i < calls.n && !ok; i++) {
		write_calls(calls.of[i].thread, text);
		ok = strstr(text, what);
	}
	pthread_mutex_unlock(&calls.lock);
	check_that(ok, __FILE__, __LINE__, what);
	len = strlen(text);
	if (!ok)
		printf("  of the last one: %s\n", text + (len > TAIL ? len - TAIL : 0));
}

/* ---- sockets ---- */

static unsigned short next_port = 7800;

static struct sock *listening(void)
{
	struct sock *sk = bound_socket("127.0.0.1", ++next_port);

	if (sample_listen(sk))
		die("cannot listen");
	return sk;
}

static int call(struct sock *sk, unsigned short port)
{
	struct sockaddr_in to;

	make_address(&to, "127.0.0.1", port);
	return sample_connect(sk, (struct sockaddr *)&to, sizeof to);
}

static struct sock *calling(void)
{
	struct sock *sk = bound_socket("127.0.0.1", 0);

	CHECK_EQ(call(sk, next_port), 0);
	return sk;
}

/* ---- sample_sock_init, sample_TI_bind, sample_TI_callback ---- */

static void initialized(void)
{
	static proto_data_t links;
	struct sock *sk = sk_alloc();

	check_case("sample_sock_init");
	fail("events_register", 0);
	CHECK_EQ(sample_sock_init(sk), -EPERM);
	CHECK_EQ(sample_sock_init(sk), 0); /* it tries anew */
	check_case("sample_TI_bind");
	fail("events_register", 0);
	CHECK_EQ(sample_TI_bind(&links), FALSE);
	check_case("sample_TI_callback");
	sample_TI_callback(TI_EVENT_NETDEV_DOWN, NULL, &links); /* which has no data */
	CHECK(!links.tp.online);
}

/* ---- sample_bind ---- */

static void bind_fails(struct sock *sk, const char *op, int want)
{
	struct sockaddr_in at;

	make_address(&at, "127.0.0.1", 0);
	fail(op, 0);
	CHECK_EQ(sample_bind(sk, (struct sockaddr *)&at, sizeof at), want);
}

static void bound(void)
{
	struct sock *sk = sk_alloc();
	struct sockaddr_in at;

	check_case("sample_bind");
	CHECK_EQ(sample_sock_init(sk), 0);
	make_address(&at, "127.0.0.1", 0);
	CHECK_EQ(sample_bind(sk, (struct sockaddr *)&at, sizeof at - 1), -EINVAL);
	bind_fails(sk, "create_ti", -EINVAL);
	bind_fails(sk, "create_endpoint", -EADDRINUSE);
	bind_fails(sk, "create_pd", -ENOSR);
	check_calls(" create_pd=18 destroy_endpoint ");
	bind_fails(sk, NULL, 0);
	sk->state = TCP_LISTEN;
	bind_fails(sk, NULL, -EINVAL);
	sk->state = TCP_CLOSE;
	sk->num = 7;
	bind_fails(sk, NULL, -EINVAL);
}

/* ---- sample_connect ---- */

static void connected(void)
{
	struct sock *sk = sk_alloc();
	struct sockaddr_in to;

	check_case("sample_connect");
	CHECK_EQ(sample_sock_init(sk), 0);
	CHECK_EQ(call(sk, 7), -EINVAL); /* not bound */
	sk = bound_socket("127.0.0.1", 0);
	make_address(&to, "127.0.0.1", 7);
	CHECK_EQ(sample_connect(sk, (struct sockaddr *)&to, sizeof to - 1), -EINVAL);
	to.sin_family = AF_INET6;
	CHECK_EQ(sample_connect(sk, (struct sockaddr *)&to, sizeof to), -EAFNOSUPPORT);
	fail("create_endpoint", 0);
	CHECK_EQ(call(sk, 7), -ENETUNREACH);
	fail("connect", 0);
	CHECK_EQ(call(sk, 7), -EADDRNOTAVAIL);
	check_calls(" create_endpoint connect=18 destroy_endpoint ");
	CHECK_EQ(sample_close(sk), 0);
}

/* ---- sample_listen ---- */

static int no_port(struct sock *sk, unsigned short port)
{
	(void)sk;
	return port ? -EADDRINUSE : 0;
}

static void hashes(struct sock *sk)
{
	(void)sk;
}

static void listens(void)
{
	struct proto taken = {.get_port = no_port, .hash = hashes};
	struct sock *first = listening(), *sk = bound_socket("127.0.0.1", next_port);
	struct proto *own = sk->prot;

	check_case("sample_listen");
	sk->prot = &taken;
	sk->num = next_port;
	CHECK_EQ(sample_listen(sk), -EADDRINUSE);
	CHECK_EQ(sk->state, TCP_CLOSE);
	sk->prot = own;
	fail(NULL, 0);
	CHECK_EQ(sample_listen(sk), -EADDRNOTAVAIL); /* the first one has it */
	CHECK_EQ(sk->state, TCP_CLOSE);
	check_calls(" listen=11 ");
	CHECK_EQ(sample_close(first), 0);
}

/* ---- sample_accept and sample_connect_request_callback ---- */

static bool no_memory;

struct sock *__real_ap_alloc_sock(struct sock *sk, int flags);
struct sock *__wrap_ap_alloc_sock(struct sock *sk, int flags);
struct sock *__wrap_ap_alloc_sock(struct sock *sk, int flags)
{
	return no_memory ? NULL : __real_ap_alloc_sock(sk, flags);
}

static void await_end(struct sock *sk)
{
	WaitOnSignalConnectDone(sk);
	CHECK_EQ(sk->ap_opt->state, SDP_CANCELED);
}

/* On the side that listens: the peer is told, and what was made is gone. */
static void accept_fails(const char *op, int want, const char *clean_up)
{
	struct sock *l = listening(), *c;
	int err = 0;

	check_case("sample_accept, %s fails", op);
	fail(op, 0);
	c = calling();
	no_memory = want == -ENOBUFS;
	CHECK(!sample_accept(l, 0, &err));
	CHECK_EQ(err, want);
	no_memory = false;
	if (want == -ENOBUFS) /* it has not answered */
		CHECK_EQ(vector.reject(&l->ap_opt->conn_req), TI_SUCCESS);
	await_end(c);
	check_calls(clean_up);
	CHECK_EQ(sample_close(c), -EPIPE); /* its handle is stale */
	CHECK_EQ(sample_close(l), 0);
}

/* On the side that connects; the other one's accept() fails by itself then. */
static void callback_fails(const char *op, const char *clean_up)
{
	struct sock *l = listening(), *c;
	int err = 0;

	check_case("sample_connect_request_callback, %s fails", op);
	fail(op, 1); /* the side that listens is first */
	c = calling();
	CHECK(!sample_accept(l, 0, &err));
	CHECK_EQ(err, -ENOSR);
	await_end(c);
	check_calls(clean_up);
	check_calls(" accept=12 res_pool_destroy destroy_cq reject ");
	CHECK_EQ(sample_close(c), -EPIPE);
	CHECK_EQ(sample_close(l), 0);
}

static void refused(void)
{
	struct sock *c = bound_socket("127.0.0.1", 0), *l, *second;
	int err = 0;

	check_case("nobody listens");
	CHECK_EQ(call(c, 7), 0);
	await_end(c);
	CHECK_EQ(sample_close(c), -EPIPE);
	check_case("nothing has come");
	l = bound_socket("127.0.0.1", 0);
	CHECK(!sample_accept(l, 0, &err));
	CHECK_EQ(err, -EINVAL);
	check_case("a second request");
	l = listening();
	c = calling();
	WaitOnSignalConnectRequest(l);
	fail(NULL, 0);
	second = calling();
	await_end(second);
	check_calls(" reject ");
	CHECK(sample_accept(l, 0, &err));
	WaitOnSignalConnectDone(c);
	CHECK_EQ(c->state, TCP_CONNECTED);
	CHECK_EQ(sample_close(c), 0);
	CHECK_EQ(sample_close(l), 0);
}

static void accepted(void)
{
	accept_fails("no memory", -ENOBUFS, " reject ");
	accept_fails("create_cq", -ENOSR, " create_cq=18 reject ");
	accept_fails("res_pool_create", -ENOSR, " res_pool_create=18 destroy_cq reject ");
	accept_fails(
		"res_pool_get", -ENOSR, " res_pool_get=18 res_pool_destroy destroy_cq reject ");
	accept_fails(
		"accept", -ENOSR, " res_pool_put accept=4 res_pool_destroy destroy_cq reject ");
	callback_fails("create_cq", " create_cq=18 reject ");
	callback_fails("res_pool_create", " res_pool_create=18 destroy_cq reject ");
	callback_fails("res_pool_get", " res_pool_get=18 res_pool_destroy destroy_cq reject ");
	callback_fails("accept", " accept=4 res_pool_destroy destroy_cq reject ");
	refused();
}

/* ---- sample_sendmsg, sample_msg_recv, their callbacks, sample_disconnect ---- */

static struct sock *l, *c, *s; /* the one that listens, that connected, that was accepted */

static void meet(void)
{
	int err;

	l = listening();
	c = calling();
	s = sample_accept(l, 0, &err);
	if (!s)
		die("no connection");
	WaitOnSignalConnectDone(c);
	CHECK_EQ(c->state, TCP_CONNECTED);
}

static char memory[1 << 16];

static int send_some(struct sock *sk, size_t have, int size)
{
	struct iovec iov = {memory, have};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return sample_sendmsg(sk, &msg, size);
}

static int recv_some(struct sock *sk, size_t room, int size)
{
	struct iovec iov = {memory, room};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int got;

	return sample_msg_recv(sk, &msg, size, 0, 0, &got);
}

static void sends(void)
{
	check_case("sample_sendmsg");
	CHECK_EQ(send_some(bound_socket("127.0.0.1", 0), 8, 8), -EAGAIN);
	meet();
	fail("res_pool_get", 0);
	CHECK_EQ(send_some(c, 8, 8), -EPIPE);
	fail(NULL, 0);
	CHECK_EQ(send_some(c, 8, 9), -EFAULT);
	check_calls(" res_pool_get res_pool_put ");
	fail("msg_send", 0);
	CHECK_EQ(send_some(c, 8, 8), -EPIPE);
	check_calls(" msg_send=18 res_pool_put ");
	CHECK_EQ(send_some(c, 8, 5000), -EFAULT); /* more than a message */
	CHECK_EQ(send_some(c, 8, 8), 0);
}

static void receives(void)
{
	check_case("sample_msg_recv");
	CHECK_EQ(recv_some(bound_socket("127.0.0.1", 0), 8, 8), -EAGAIN);
	CHECK_EQ(recv_some(s, 4, 8), -EFAULT);
	fail("msg_recv", 0);
	CHECK_EQ(recv_some(s, 8, 8), -EPIPE); /* it was read; its element is not posted again */
	check_calls(" msg_recv=18 res_pool_put ");
}

/* ---- what waits when the connection ends ---- */

static atomic_int waiter;

static void *wait_for_data(void *result)
{
	waiter = gettid();
	*(int *)result = recv_some(c, 8, 8);
	return NULL;
}

/* As many as there are receives are taken; the next one waits for another. */
static void *send_too_many(void *result)
{
	waiter = gettid();
	while ((*(int *)result = send_some(c, 8, 8)) == 0)
		;
	return NULL;
}

static bool is_connected(struct sock *sk)
{
	bool is;

	lock_sock(sk);
	is = sk->ap_opt->state == SDP_CONNECTED;
	release_sock(sk);
	return is;
}

/* The other side closes; all that it and this one had posted is back in the pools. */
static void end_under(void *(*run)(void *), int want)
{
	int result = 0;
	pthread_t thread;

	waiter = 0;
	pthread_create(&thread, NULL, run, &result);
	while (!waiter)
		usleep(1000);
	await_sleep(waiter);
	CHECK_EQ(sample_close(s), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(result, want);
	for (int i = 0; is_connected(c) && i < WAIT_MS; i++)
		usleep(1000);
	CHECK_EQ(send_some(c, 8, 8), -EAGAIN);
}

/* The receives come back behind the error callback. */
static void check_all_back(void)
{
	ti_status_t st = TI_RESOURCE_BUSY;

	for (int i = 0; st == TI_RESOURCE_BUSY && i < WAIT_MS; i++) {
		st = real->res_pool_destroy(c->ap_opt->h_msg_pool);
		usleep(1000);
	}
	CHECK_EQ(st, TI_SUCCESS);
}

static void ends(void)
{
	check_case("a sender waits, and the connection ends");
	end_under(send_too_many, -ENOTCONN);
	check_all_back();
	check_case("sample_disconnect");
	CHECK_EQ(sample_close(c), 0);
	CHECK_EQ(sample_close(c), 0); /* again: nothing is left to do */
	check_case("a reader waits, and the connection ends");
	meet();
	end_under(wait_for_data, -ENOTCONN);
	check_all_back();
	check_case("sample_disconnect of what has gone");
	CHECK_EQ(real->disconnect(c->ap_opt->h_conn, NULL, NULL), TI_SUCCESS);
	CHECK_EQ(sample_close(c), -EPIPE);
}

int main(void)
{
	use_vector();
	initialized();
	bound();
	connected();
	listens();
	accepted();
	sends();
	receives();
	ends();
	return check_result();
}
