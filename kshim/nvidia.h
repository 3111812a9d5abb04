/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>

/* As old drivers: who is told that memory goes frees its tables. */
void nvidia_old_freeing(bool old);
