// SPDX-License-Identifier: BSD-3-Clause
/* The request callback, and requests that come to nothing. */
#include "ti/conn/request.h"

#include "ti/conn/conn.h"
#include "ti/conn/disconnect.h"
#include "ti/core/fork.h"
#include "ti/core/trace.h"

/*
 * On the system thread, so that a program which waits for the callback may look there meanwhile.
 * True: accept() or reject() is to end it.
 */
static bool fill_request(struct conn *c)
{
	uint32_t end = c->offset + c->offset_len;
	bool asked, reaches;

	pthread_mutex_lock(&c->lock);
	conn_check_time(c);
	asked = conn_state(c) == CONN_ASKED;
	if (asked && service_ends(c->m.ti)) {
		asked = false;
		c->result = TI_CANCELED;
	}
	reaches = end <= c->priv_in_len;
	*c->request = (ti_conn_request_t){
		.conn_handle = c->m.obj.handle,
		.status = asked ? TI_SUCCESS : c->result,
		.caller = !c->active,
		.cb_type = !asked      ? CN_REJECT
			   : c->active ? CN_REPLY
				       : CN_REQUEST,
		.context = c->context,
		.private_data_len = c->priv_in_len,
		.private_data = c->priv_in_len ? c->priv_in : NULL,
		.private_data_offset = reaches ? c->offset : 0,
		.private_data_offset_len = reaches ? c->offset_len : 0,
	};
	pthread_mutex_unlock(&c->lock);
	return asked;
}

static void run_request(struct job *job)
{
	struct conn *c = CONN_OF(job, request_job);
	unsigned forks = fork_count();

	if (!fill_request(c))
		(void)conn_close(c, NULL, NULL);
	c->request_cb(c->request);
	fork_called_back(forks);
	conn_put(c);
}

void conn_tell(struct conn *c)
{
	object_hold(&c->m.obj);
	c->request_job.run = run_request;
	system_post(&c->request_job);
}

/* Peers may be away, or refuse; what else there is went wrong here. */
static void log_failure(const struct conn *c, ti_status_t status)
{
	log_line(status == TI_ERROR ? LOG_LVL_ERROR : LOG_LVL_INFO,
		"ti: connection %p is not made: %s", (void *)c->m.obj.handle,
		ti_status_2_str(status));
}

/*
 * A connect() that is not answered is told; who may accept() or waits in it hears it from there.
 */
void conn_fail(struct conn *c, ti_status_t status)
{
	bool tell = false;

	pthread_mutex_lock(&c->lock);
	switch (conn_state(c)) {
	case CONN_CONNECTING:
		tell = true;
		/* fallthrough */
	case CONN_ASKED:
	case CONN_ACCEPTING:
		c->result = status;
		log_failure(c, status);
		conn_set_state(c, CONN_FAILED);
		break;
	default:
		break;
	}
	if (tell)
		conn_tell(c);
	pthread_mutex_unlock(&c->lock);
}
