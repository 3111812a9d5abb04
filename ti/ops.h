/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/core/ti.h"

/* The vector that programs get. */
extern ti_ops_t ti_vector;
