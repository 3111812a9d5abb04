/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/core/ti.h"

/* The status for an errno (of either sign) of a call that makes something. */
ti_status_t status_of_errno(int err);
