// SPDX-License-Identifier: BSD-3-Clause
#include "rdmacm/call.h"

#include <string.h>

#include "base/log.h"
#include "cm/cm.h"
#include "verbs/for_rdmacm.h"

uint32_t channel_of(const struct ident *id)
{
	return id->id.channel ? to_channel(id->id.channel)->id : 0;
}

int call_about(uint32_t op, uint32_t handle)
{
	const struct cm_id_call call = {.handle = handle};

	return weft_cm_call(op, &call, sizeof call, NULL);
}

int tell_about(uint32_t op, uint32_t handle)
{
	const struct cm_id_call call = {.handle = handle};

	return weft_cm_post(op, &call, sizeof call) ? call_about(op, handle) : 0;
}

int check_private_data(const void *data, size_t len, size_t max)
{
	if (len > max)
		return log_refused(-EINVAL,
			"private data of %zu bytes refused: this message has room for %zu", len,
			max);
	return len && !data ? log_refused(-EINVAL, "private data of %zu bytes is missing", len) : 0;
}

int copy_private_data(uint8_t *priv, uint8_t *priv_len, const void *data, size_t len, size_t max)
{
	int ret = check_private_data(data, len, max);

	if (ret)
		return ret;
	if (len)
		memcpy(priv, data, len);
	*priv_len = len;
	return 0;
}

int call_reject(const struct ident *id, uint16_t reason, const void *priv, uint8_t n)
{
	struct cm_reject_call call = {.handle = id->handle, .reason = reason};
	int ret = copy_private_data(call.priv, &call.priv_len, priv, n, sizeof call.priv);

	return ret ? ret : weft_cm_call(OP_CM_REJECT, &call, cm_reject_size(&call), NULL);
}
