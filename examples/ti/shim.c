// SPDX-License-Identifier: BSD-3-Clause
#include "shim.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

int sysctl_ap_msg_size = 4096, sysctl_ap_msg_depth = 16;

/* ---- the transport: the library finds these two ---- */

void SDP_register_transport(ti_ops_t *ops, ti_event_cb_t ti_event_notify)
{
	(void)ti_event_notify;
	ti_ops = ops;
}

void SDP_deregister_transport(ti_ops_t *ops, ti_event_cb_t ti_event_notify)
{
	(void)ops;
	(void)ti_event_notify;
}

/* ---- waiting ---- */

void init_waitqueue(wait_queue_head_t *q)
{
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
}

/* ---- lists of elements ---- */

static void spin_lock(atomic_t *lock)
{
	while (atomic_exchange_explicit(&lock->v, 1, memory_order_acquire))
		sched_yield();
}

static void spin_unlock(atomic_t *lock)
{
	atomic_store_explicit(&lock->v, 0, memory_order_release);
}

void insert_queue_tail_locked(atomic_t *lock, ti_data_element_t **list, ti_data_element_t *e)
{
	e->p_next_msg = NULL;
	spin_lock(lock);
	while (*list)
		list = &(*list)->p_next_msg;
	*list = e;
	spin_unlock(lock);
}

void remove_queue_head_locked(atomic_t *lock, ti_data_element_t **list)
{
	spin_lock(lock);
	*list = (*list)->p_next_msg;
	spin_unlock(lock);
}

ti_data_element_t *queue_head_locked(atomic_t *lock, ti_data_element_t **list)
{
	ti_data_element_t *e;

	spin_lock(lock);
	e = *list;
	spin_unlock(lock);
	return e;
}

/* ---- user memory: the samples' calls have one piece ---- */

int memcpy_fromiovec(void *to, struct iovec *from, int len)
{
	if (len < 0 || (size_t)len > from->iov_len)
		return -EFAULT;
	memcpy(to, from->iov_base, len);
	return 0;
}

int memcpy_toiovec(struct iovec *to, void *from, int len)
{
	if (len < 0 || (size_t)len > to->iov_len)
		return -EFAULT;
	memcpy(to->iov_base, from, len);
	return 0;
}

/* ---- sockets ---- */

static struct sock *socks; /* all of them */
static pthread_mutex_t socks_lock = PTHREAD_MUTEX_INITIALIZER;

/* The number that bind() was given. */
static int get_port(struct sock *sk, unsigned short port)
{
	sk->num = port ? port : ntohs(sk->sport);
	return 0;
}

static void hash(struct sock *sk)
{
	(void)sk;
}

static struct proto proto = {.get_port = get_port, .hash = hash};

void lock_sock(struct sock *sk)
{
	pthread_mutex_lock(&sk->lock);
}

void release_sock(struct sock *sk)
{
	pthread_mutex_unlock(&sk->lock);
}

static void prepare(struct sock *sk)
{
	sk->prot = &proto;
	sk->ap_opt = &sk->tp_pinfo.af_ap;
	pthread_mutex_init(&sk->lock, NULL);
	pthread_cond_init(&sk->changed, NULL);
	pthread_mutex_lock(&socks_lock);
	sk->next = socks;
	socks = sk;
	pthread_mutex_unlock(&socks_lock);
}

struct sock *sk_alloc(void)
{
	struct sock *sk = calloc(1, sizeof *sk);

	if (sk)
		prepare(sk);
	return sk;
}

struct sock *ap_alloc_sock(struct sock *sk, int flags)
{
	struct sock *copy = calloc(1, sizeof *copy);

	(void)flags;
	if (!copy)
		return NULL;
	*copy = *sk;
	prepare(copy);
	init_waitqueue(&copy->ap_opt->send_waitq);
	init_waitqueue(&copy->ap_opt->recv_waitq);
	copy->ap_opt->h_listen_conn = NULL;
	copy->ap_opt->conn_req.private_data = &copy->ap_opt->private_data;
	return copy;
}

/* ---- what the samples call and do not give ---- */

static struct sock *sock_of(struct ap_opt *p_conn)
{
	return (struct sock *)((char *)p_conn - offsetof(struct sock, tp_pinfo));
}

void SignalConnectRequest(struct ap_opt *p_conn)
{
	pthread_cond_broadcast(&sock_of(p_conn)->changed);
}

void SignalConnectDone(struct ap_opt *p_conn)
{
	pthread_cond_broadcast(&sock_of(p_conn)->changed);
}

static void end_as(struct ap_opt *p_conn, int state)
{
	struct sock *sk = sock_of(p_conn);

	lock_sock(sk);
	wake_up_after(&p_conn->recv_waitq, p_conn->state = state);
	pthread_cond_broadcast(&sk->changed);
	release_sock(sk);
}

void RequestCanceled(struct ap_opt *p_conn, ti_status_t status)
{
	fprintf(stderr, "no connection: %s\n", ti_ops->ti_status_2_str(status));
	end_as(p_conn, SDP_CANCELED);
}

void ConnErrCallback(ti_err_rec_t *pErrorRec)
{
	end_as(pErrorRec->context, SDP_CLOSED);
}

void WaitOnSignalConnectRequest(struct sock *sk)
{
	lock_sock(sk);
	while (sk->ap_opt->state == SDP_PENDING)
		pthread_cond_wait(&sk->changed, &sk->lock);
	release_sock(sk);
}

void WaitOnSignalConnectDone(struct sock *sk)
{
	WaitOnSignalConnectRequest(sk);
}

void WaitOnSignalRecvData(struct sock *sk)
{
	struct ap_opt *p_conn = sk->ap_opt;

	release_sock(sk);
	(void)wait_event_interruptible(
		&p_conn->recv_waitq, queue_head_locked(&p_conn->recv_q_lock, &p_conn->rmsgs) ||
					     p_conn->state != SDP_CONNECTED);
	lock_sock(sk);
}

void InitializeMsgs(struct ap_opt *p_conn, ti_pool_response_t *pPoolResp)
{
	for (ti_data_element_t *e = pPoolResp->p_element_list; e; e = e->p_next_msg)
		((send_context_t *)e->p_context)->p_conn = p_conn;
}
