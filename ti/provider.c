// SPDX-License-Identifier: BSD-3-Clause
/* Protocol providers: who is linked in, and who is added later. */
#include "ti/core/ti.h"

#include <pthread.h>
#include <stdlib.h>

#include "ti/event/events.h"
#include "ti/ops.h"

#pragma weak SDP_register_transport
#pragma weak SDP_deregister_transport

struct provider {
	struct provider *next;
	ti_provider_cb_t add, remove;
};

static struct {
	pthread_mutex_t lock;
	struct provider *list;
} providers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct provider **find(ti_provider_cb_t add, ti_provider_cb_t remove)
{
	struct provider **at = &providers.list;

	while (*at && ((*at)->add != add || (*at)->remove != remove))
		at = &(*at)->next;
	return at;
}

ti_status_t ti_provider_add(ti_provider_cb_t add, ti_provider_cb_t remove)
{
	struct provider *p, **at;

	if (!add)
		return TI_INVALID_PARAMETER;
	p = calloc(1, sizeof *p);
	if (!p)
		return TI_INSUFFICIENT_MEMORY;
	p->add = add;
	p->remove = remove;
	pthread_mutex_lock(&providers.lock);
	at = find(add, remove);
	if (*at) {
		pthread_mutex_unlock(&providers.lock);
		free(p);
		return TI_INVALID_PARAMETER;
	}
	*at = p;
	pthread_mutex_unlock(&providers.lock);
	add(&ti_vector, events_notify);
	return TI_SUCCESS;
}

/* Takes it out of the list; NULL: it is not there. */
static struct provider *take(ti_provider_cb_t add, ti_provider_cb_t remove)
{
	struct provider *p, **at;

	pthread_mutex_lock(&providers.lock);
	at = find(add, remove);
	p = *at;
	if (p)
		*at = p->next;
	pthread_mutex_unlock(&providers.lock);
	return p;
}

ti_status_t ti_provider_remove(ti_provider_cb_t add, ti_provider_cb_t remove)
{
	struct provider *p = take(add, remove);

	if (!p)
		return TI_NOT_FOUND;
	free(p);
	if (remove)
		remove(&ti_vector, events_notify);
	return TI_SUCCESS;
}

/* ---- with the process ---- */

__attribute__((constructor)) static void loaded(void)
{
	if (SDP_register_transport)
		(void)ti_provider_add(SDP_register_transport, SDP_deregister_transport);
}

__attribute__((destructor)) static void ended(void)
{
	events_raise_here(TI_EVENT_TI_SHUTDOWN, ti_vector.transport_name);
	while (providers.list)
		(void)ti_provider_remove(providers.list->add, providers.list->remove);
}
