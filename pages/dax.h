/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* Is it a DAX device (/dev/dax*)?  Asks sysfs; may change errno. */
bool dax_is_device(const struct stat *st);
