/* SPDX-License-Identifier: BSD-3-Clause */
/* The samples' types, which the document has in sample_sock_init, and the socket with them. */
#pragma once

#include "shim.h"

#include "sdp_ti.h"
#include <linux/net.h>

typedef struct _transport_data_ {
	boolean_t bound;
	boolean_t online; /* set by the event callback */
	ti_transport_desc_t tpd;
} transport_data_t;
typedef struct _Protocol_Data_ {
	char *link_dev_name;
	void *transport_context;
	transport_data_t tp;
} proto_data_t;
#define SDP_CLOSED     1
#define SDP_PENDING    2
#define SDP_CONNECTING 3
#define SDP_CANCELED   4
#define SDP_CONNECTED  5
typedef struct _ap_private {
	int desired_rmsg_size;
} ap_private_t;
struct ap_opt {
	/* the transport's operations */
	ti_ops_t *ti_ops;
	/* SDP_* */
	int state;
	/* what the transport gave */
	ti_handle_t h_ti;
	ti_conn_handle_t h_conn;
	ti_conn_handle_t h_listen_conn;
	ti_cq_handle_t h_cq;
	ti_res_pool_handle_t h_msg_pool;
	ti_res_pool_handle_t h_rdma_pool;
	struct socket *sk;
	/* the request of a peer, until it is answered */
	ti_conn_request_t conn_req;
	ti_conn_info_t conn_info;
	ti_conn_attr_t conn_attr;
	int rmsg_size; /* of a message received, in bytes */
	int rmsg_depth;
	int smsg_size;
	int smsg_depth;
	int rdma_depth;
	int max_msg_size;
	int max_rdma_size;
	/* what was received and not read yet */
	ti_data_element_t *rmsgs;
	atomic_t recv_q_lock;
	/* sent with requests and answers */
	ap_private_t private_data;
	wait_queue_head_t send_waitq;
	wait_queue_head_t recv_waitq;
};
typedef struct _send_context {
	struct ap_opt *p_conn;
} send_context_t;

extern proto_data_t Protocol_Data;

/* ---- not in the document ---- */

struct sock {
	int state; /* TCP_* */
	int err, done;
	int sndbuf, rcvbuf, use_write_queue, userlocks;
	unsigned short num, sport, dport; /* num in host order */
	uint32_t saddr, rcv_saddr, daddr;
	struct proto *prot;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* ap_opt's state did */
	struct ap_opt *ap_opt;  /* is tp_pinfo's */
	union {
		struct ap_opt af_ap;
	} tp_pinfo;
	struct sock *next;
};

extern ti_ops_t *ti_ops;

int sample_sock_init(struct sock *sk);
int sample_bind(struct sock *sk, struct sockaddr *uaddr, int addr_len);
int sample_connect(struct sock *sk, struct sockaddr *uaddr, int addr_len);
int sample_listen(struct sock *sk);
struct sock *sample_accept(struct sock *sk, int flags, int *err);
int sample_sendmsg(struct sock *sk, struct msghdr *msg, int size);
int sample_msg_recv(
	struct sock *sk, struct msghdr *msg, int size, int nonblock, int flags, int *addr_len);
int sample_close(struct sock *sk);

boolean_t sample_TI_bind(proto_data_t *pd);
void sample_TI_callback(ti_event_t event, const void *data, const void *context);
void sample_connect_request_callback(ti_conn_request_t *pConnReq);
void sample_msg_send_complete(ti_cq_handle_t cq_handle, ti_data_element_t *de_list);
void sample_msg_recv_complete(ti_cq_handle_t h_cq, ti_data_element_t *de_list);

/*
 * Of our own, for what is longer than a message, both sides at once: the source tells where its
 * data are; the sink reads the first half of them, and tells where the source is to write the
 * other.  The memory is one piece.  0, or a negative errno code.
 */
int sample_rdma_write(struct sock *sk, struct msghdr *msg, int size);
int sample_rdma_read(struct sock *sk, struct msghdr *msg, int size, int *addr_len);
