/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>

/*
 * True if the port opened last has headers with a P_Key index, of 64 bytes in place of 56.  One
 * answer for all ports: the functions of a MAD do not know its port.
 */
bool io_has_pkey(void);
