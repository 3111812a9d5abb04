/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing of it is needed by clients. */
#pragma once

#include <linux/types.h>
