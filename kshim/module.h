/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shim does for modules as a whole; the functions are those of <linux/module.h>. */
#pragma once

/* References to modules that were not dropped. */
long module_references(void);
