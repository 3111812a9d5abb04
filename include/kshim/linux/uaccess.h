/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program, which is the client's own here. */
#pragma once

#include <linux/compiler.h>
#include <linux/types.h>

/* Bytes that were not copied: 0, or n if some of them are not mapped. */
unsigned long copy_to_user(void *to, const void *from, unsigned long n);
unsigned long copy_from_user(void *to, const void *from, unsigned long n);
