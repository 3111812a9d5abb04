// SPDX-License-Identifier: BSD-3-Clause
#include "cm/suspect.h"

#include "cm/id.h"

enum { ASK_MS = 1000, ASK_AGAIN = 7 };

/* What is under way while it stands is our question alone. */
static bool is_asked(const struct cm_id *id)
{
	return id->state == CM_ESTABLISHED && id->pending;
}

static struct cm_msg question(const struct cm_id *id)
{
	struct cm_msg m = id_msg(id, id->handle & CM_HANDLE_PASSIVE ? CM_REP : CM_LAP);

	if (m.hdr.attr == CM_LAP) {
		m.lap.remote_qpn = id->remote_qpn;
		m.lap.remote_timeout = CM_TIMEOUT;
		return m;
	}
	if (id->transport == CM_XRC)
		m.rep.eecn = id->qpn;
	else
		m.rep.qpn = id->qpn;
	m.rep.psn = id->psn;
	m.rep.ca_guid = id->cm->ca_guid;
	return m;
}

void suspect(struct cm_id *id)
{
	struct cm_msg m;

	if (id->state != CM_ESTABLISHED || id->pending)
		return;
	m = question(id);
	id_repeat(id, &m, ASK_MS, ASK_AGAIN);
}

void suspect_cleared(struct cm_id *id)
{
	if (is_asked(id))
		id_cancel(id);
}

bool suspect_gone(struct cm_id *id)
{
	if (!is_asked(id))
		return false;
	id_event_simple(id, CM_EV_DISCONNECTED, 0);
	id_timewait(id);
	return true;
}
