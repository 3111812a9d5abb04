/* SPDX-License-Identifier: BSD-3-Clause */
/* As if of a kernel that MLNX_OFED 5.4 was made for; -DLINUX_VERSION_CODE=... chooses another. */
#pragma once

#ifndef KERNEL_VERSION
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#endif
#ifndef LINUX_VERSION_CODE
#define LINUX_VERSION_CODE KERNEL_VERSION(5, 15, 0)
#endif
