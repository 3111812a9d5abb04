/* SPDX-License-Identifier: BSD-3-Clause */
/* The side of the process that made the endpoints (heir.h): questions become calls. */
#pragma once

#include <stdbool.h>

/* Takes one question that came by that socket; false: nobody asks there any more. */
bool heir_asked(int sock);
