// SPDX-License-Identifier: BSD-3-Clause
/* The client of kfd.c as a part of AMD's own module, which starts and ends it. */
#define KFD_PRIV
#include "kfd.c"
