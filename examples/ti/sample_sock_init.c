// SPDX-License-Identifier: BSD-3-Clause
/* Makes a socket usable; with the first one, asks for the events of links. */
#include "sample.h"

boolean_t transport_initialized = FALSE;
ti_opts_t *ti_ops = NULL; /* set when the transport registers */
proto_data_t Protocol_Data;

atomic_t ap_sockets_allocated;

int sample_sock_init(IN struct sock *sk)
{
	struct ap_opt *p_conn = &sk->tp_pinfo.af_ap;
	ti_status_t status;

	if (transport_initialized == FALSE) {
		proto_data_t *pd = &Protocol_Data;

		status = ti_ops->events_register((void *)pd, sample_TI_callback);
		if (status != TI_SUCCESS) {
			return -ENOPERM;
		}
		transport_initialized = TRUE;
	}

	p_conn->ti_ops = ti_ops;
	p_conn->h_conn = NULL;
	p_conn->h_listen_conn = NULL;
	p_conn->state = SDP_CLOSED;
	init_waitqueue(&p_conn->send_waitq);
	init_waitqueue(&p_conn->recv_waitq);
	sk->state = TCP_CLOSE;
	sk->use_write_queue = 0;
	p_conn->rmsg_size = p_conn->smsg_size = sysctl_ap_msg_size;
	p_conn->rmsg_depth = p_conn->smsg_depth = sysctl_ap_msg_depth;
	sk->sndbuf = sk->rcvbuf = sysctl_ap_msg_size * sysctl_ap_msg_depth;
	atomic_inc(&ap_sockets_allocated);
	return SUCCESS;
}
