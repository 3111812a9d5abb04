/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's errors, those that programs never see too. */
#pragma once

#include_next <linux/errno.h>

#define ERESTARTSYS 512
#define ENOTSUPP    524
