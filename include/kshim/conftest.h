/* SPDX-License-Identifier: BSD-3-Clause */
/* What the build of NVIDIA's kernel modules finds out, as far as its peer client asks. */
#pragma once

#define NV_MLNX_IB_PEER_MEM_SYMBOLS_PRESENT 1

#ifndef NV_VERSION_STRING
#define NV_VERSION_STRING "kshim" /* its client's version */
#endif
