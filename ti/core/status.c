// SPDX-License-Identifier: BSD-3-Clause
#include "ti/core/status.h"

#include <errno.h>

ti_status_t status_of_errno(int err)
{
	switch (err < 0 ? -err : err) {
	case 0:
		return TI_SUCCESS;
	case ENOMEM:
		return TI_INSUFFICIENT_MEMORY;
	case EINVAL:
		return TI_INVALID_PARAMETER;
	case ENOSPC:
	case EMFILE:
	case ENFILE:
	case EAGAIN:
		return TI_INSUFFICIENT_RESOURCES;
	case EADDRINUSE:
		return TI_RESOURCE_BUSY;
	case EACCES:
	case EPERM:
		return TI_INVALID_PERMISSION;
	case EFAULT:
		return TI_INVALID_ADDRESS;
	case ETIMEDOUT:
		return TI_TIMEOUT;
	case EOPNOTSUPP:
		return TI_UNSUPPORTED;
	default:
		return TI_ERROR;
	}
}
