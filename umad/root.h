/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the fabric's sysfs is: in weftd's tree (fabric/sysfs.h), below the runtime directory.  The
 * path shim leads /sys/class there as well; without it, and on a machine that has adapters of its
 * own, a program sees what libibverbs.so.1 shows it, too.
 */
#pragma once

#include <limits.h>

/*
 * Writes the path of what the format names below /sys/class into buf; it need not be there.  Looks
 * for weftd (rdv/look.h): may block.  -ENAMETOOLONG, and those of rdv_paths_open(): no runtime
 * directory.
 */
int root_path(char buf[PATH_MAX], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
