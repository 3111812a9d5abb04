/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/core/ti.h"

ti_status_t op_io_ctl(ti_handle_t h_ti, ti_ioctl_t cmd, uint32_t *p_bytes, void *p_data);
