// SPDX-License-Identifier: BSD-3-Clause
/* Sends a message and waits until it is there. */
#include "sample.h"

int sample_sendmsg(IN struct sock *sk, IN struct msghdr *msg, IN int size)
{
	struct ap_opt *p_conn = sk->ap_opt;
	ti_status_t status;
	ti_data_element_t *p_msg;
	ti_pool_response_t res_pool_resp;
	send_context_t *send_context;
	int mss, rc;

	lock_sock(sk);
	if (p_conn->state != SDP_CONNECTED) {
		release_sock(sk);
		return -EAGAIN;
	}

	/* what is longer than a message goes by RDMA */
	mss = p_conn->smsg_size;
	if (size > mss) {
		release_sock(sk);
		return (sample_rdma_write(sk, msg, size));
	}
	if (p_conn->ti_ops->res_pool_get(
		    p_conn->h_msg_pool, 1, FALSE, NULL, NULL, NULL, &res_pool_resp) != TI_SUCCESS) {
		release_sock(sk);
		return -EPIPE;
	}

	p_msg = res_pool_resp.p_element_list;
	if (memcpy_fromiovec(p_msg->local_data_desc->vaddr, msg->msg_iov, size)) {
		p_conn->ti_ops->res_pool_put(p_conn->h_msg_pool, p_msg);
		release_sock(sk);
		return -EFAULT;
	}

	p_msg->msg_opt = TI_OPT_SOLICITED | AT_OPT_SIGNALED;
	p_msg->local_data_desc->byte_count = size;
	send_context = (send_context_t *)p_msg->p_context;
	send_context->p_conn = p_conn;
	p_msg->iodone = FALSE;
	if ((p_conn->ti_ops->msg_send(p_conn->h_conn, p_msg)) != TI_SUCCESS) {
		p_conn->ti_ops->res_pool_put(p_conn->h_msg_pool, p_msg);
		release_sock(sk);
		return -EPIPE;
	}
	release_sock(sk);
	rc = wait_event_interruptible(&p_conn->send_waitq, (p_msg->iodone != FALSE));
	status = p_msg->status;
	p_conn->ti_ops->res_pool_put(p_conn->h_msg_pool, p_msg);
	if (rc == -ERESTARTSYS)
		return -EINTR;
	else if (status == TI_SUCCESS)
		return 0;
	else
		return -ENOTCONN;
}
