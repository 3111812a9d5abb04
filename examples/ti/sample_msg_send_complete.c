// SPDX-License-Identifier: BSD-3-Clause
/* Wakes the senders of messages that are sent. */
#include "sample.h"

void sample_msg_send_complete(ti_cq_handle_t cq_handle, ti_data_element_t *de_list)
{
	struct ap_opt *p_conn;
	ti_data_element_t *p_msg = de_list, *p_next;
	send_context_t *send_context;

	while (p_msg) {
		send_context = (send_context_t *)p_msg->p_context;
		p_conn = send_context->p_conn;
		/* the sender has it from here on, and puts it back alone */
		p_next = p_msg->p_next_msg;
		p_msg->p_next_msg = NULL;
		wake_up_after(&p_conn->send_waitq, p_msg->iodone = TRUE);
		p_msg = p_next;
	}
}
