// SPDX-License-Identifier: BSD-3-Clause
/* Ends a connection, and the service with all that it has. */
#include "sample.h"

int sample_close(IN struct sock *sk)
{
	struct ap_opt *p_conn = sk->ap_opt;
	ti_status_t status;
	int rc = SUCCESS;

	lock_sock(sk);
	if (sk->state == TCP_CLOSE) {
		release_sock(sk);
		return SUCCESS;
	}
	if (p_conn->h_conn) {
		status = p_conn->ti_ops->disconnect(p_conn->h_conn, 0, 0);
		if (status != TI_SUCCESS) {
			rc = -EPIPE;
		}
		p_conn->h_conn = NULL;
	}
	sk->state = TCP_CLOSE;
	release_sock(sk);
	p_conn->ti_ops->destroy_ti(p_conn->h_ti, NULL, NULL);
	return rc;
}
