// SPDX-License-Identifier: BSD-3-Clause
#include "rdmacm/call.h"

#include <string.h>

#include "cm/cm.h"
#include "verbs/for_rdmacm.h"

struct cm_call call_for(const struct ident *id)
{
	return (struct cm_call){
		.handle = id->handle,
		.channel = id->id.channel ? to_channel(id->id.channel)->id : 0,
		.flags = id->flags,
		.ps = id->id.ps,
		.src = id->src,
		.dst = id->dst,
	};
}

int call_weftd(uint32_t op, const struct cm_call *call, void *reply)
{
	return weft_cm_call(op, call, cm_call_size(call), reply);
}

int tell_weftd(uint32_t op, const struct cm_call *call)
{
	int ret = weft_cm_post(op, call, cm_call_size(call));

	return ret ? call_weftd(op, call, NULL) : 0;
}

int set_private_data(struct cm_call *call, const void *data, size_t len, size_t max)
{
	if (len > max || (len && !data))
		return -EINVAL;
	if (len)
		memcpy(call->priv, data, len);
	call->param.priv_len = len;
	return 0;
}
