/* SPDX-License-Identifier: BSD-3-Clause */
/* The other name that the document has for <ti_exports.h>. */
#include <ti_exports.h>
