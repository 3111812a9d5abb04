/* SPDX-License-Identifier: BSD-3-Clause */
/* What the samples had from the kernel around them, by POSIX threads: a small socket layer. */
#pragma once

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <sdp_ti.h>

struct sock;
struct socket;
struct ap_opt;

/* ---- words of the kernel ---- */

#define SUCCESS            0
#define ENOPERM            EPERM
#define ERESTARTSYS        512
#define TCP_CONNECTED      TCP_ESTABLISHED
#define GFP_KERNEL         0
#define SOCK_BINDADDR_LOCK 4
#define SOCK_BINDPORT_LOCK 8
#define min(a, b)          ((a) < (b) ? (a) : (b))

typedef uint32_t uint32;

typedef struct {
	atomic_int v;
} atomic_t;
#define atomic_inc(a) atomic_fetch_add(&(a)->v, 1)

extern int sysctl_ap_msg_size, sysctl_ap_msg_depth; /* set by the program before it makes sockets */
enum { MaxRdmaSize = 1 << 30 };

/* ---- waiting ---- */

typedef struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
} wait_queue_head_t;

void init_waitqueue(wait_queue_head_t *q);

/* Does what makes a waiter's condition true, and wakes all. */
#define wake_up_after(q, change)                                                                   \
	do {                                                                                       \
		wait_queue_head_t *q_ = (q);                                                       \
                                                                                                   \
		pthread_mutex_lock(&q_->lock);                                                     \
		change;                                                                            \
		pthread_cond_broadcast(&q_->changed);                                              \
		pthread_mutex_unlock(&q_->lock);                                                   \
	} while (0)
#define wake_up_interruptible(q) wake_up_after(q, (void)0)

/* Waits until cond, which is looked at under the queue's lock; 0, for signals do not end it. */
#define wait_event_interruptible(q, cond)                                                          \
	({                                                                                         \
		wait_queue_head_t *q_ = (q);                                                       \
                                                                                                   \
		pthread_mutex_lock(&q_->lock);                                                     \
		while (!(cond))                                                                    \
			pthread_cond_wait(&q_->changed, &q_->lock);                                \
		pthread_mutex_unlock(&q_->lock);                                                   \
		0;                                                                                 \
	})

/* ---- lists of elements, under a spin lock ---- */

void insert_queue_tail_locked(atomic_t *lock, ti_data_element_t **list, ti_data_element_t *e);
/* Takes the first off; the list must not be empty. */
void remove_queue_head_locked(atomic_t *lock, ti_data_element_t **list);
ti_data_element_t *queue_head_locked(atomic_t *lock, ti_data_element_t **list);

/* ---- user memory: 0, or not if the vector has less room ---- */

int memcpy_fromiovec(void *to, struct iovec *from, int len);
int memcpy_toiovec(struct iovec *to, void *from, int len);

/* ---- sockets ---- */

/* The functions of a protocol that samples call. */
struct proto {
	int (*get_port)(struct sock *sk, unsigned short port);
	void (*hash)(struct sock *sk);
};

void lock_sock(struct sock *sk);
void release_sock(struct sock *sk);
#define sk_dst_reset(sk) ((void)(sk))

/* A new one, not initialized; it is there to the end of the program, for late callbacks. */
struct sock *sk_alloc(void);
/* A copy, with locks of its own, for a connection that a listener accepts; NULL: no memory. */
struct sock *ap_alloc_sock(struct sock *sk, int flags);

/* ---- what the samples call and do not give ---- */

/* The request came; the connection is there.  The socket is locked, or was when it changed. */
void SignalConnectRequest(struct ap_opt *p_conn);
void SignalConnectDone(struct ap_opt *p_conn);
/* The connection cannot be made: SDP_CANCELED.  The socket is not locked. */
void RequestCanceled(struct ap_opt *p_conn, ti_status_t status);
/* Wait until a connection is not SDP_PENDING any more.  The socket is not locked. */
void WaitOnSignalConnectRequest(struct sock *sk);
void WaitOnSignalConnectDone(struct sock *sk);
/* Waits for data or the end of the connection.  The socket is locked, but not while it waits. */
void WaitOnSignalRecvData(struct sock *sk);
/* Lets the elements' contexts name their connection. */
void InitializeMsgs(struct ap_opt *p_conn, ti_pool_response_t *pPoolResp);
/* The connection ended: SDP_CLOSED. */
void ConnErrCallback(ti_err_rec_t *pErrorRec);
