// SPDX-License-Identifier: BSD-3-Clause
/* Keeps what was received for those who read; puts the rest back. */
#include "sample.h"

void sample_msg_recv_complete(IN ti_cq_handle_t h_cq, IN ti_data_element_t *de_list)
{
	struct ap_opt *p_conn;
	ti_data_element_t *p_msg = de_list, *p_next;

	while (p_msg) {
		p_next = p_msg->p_next_msg;
		p_msg->p_next_msg = NULL;
		p_conn = ((send_context_t *)p_msg->p_context)->p_conn;
		if (p_msg->status != TI_SUCCESS) {

			p_conn->ti_ops->res_pool_put(p_conn->h_msg_pool, p_msg);
		} else {
			p_msg->ud_offset = 0;
			insert_queue_tail_locked(&p_conn->recv_q_lock, &p_conn->rmsgs, p_msg);
			wake_up_interruptible(&p_conn->recv_waitq);
		}
		p_msg = p_next;
	}
}
