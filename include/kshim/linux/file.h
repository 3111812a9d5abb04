/* SPDX-License-Identifier: BSD-3-Clause */
/* get_file() and fput(). */
#pragma once

#include <linux/fs.h>
