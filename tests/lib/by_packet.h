/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>

/* Do packets carry what goes between two processes of this test (WEFT_WIRE=always)? */
bool by_packet(void);
