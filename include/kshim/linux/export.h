/* SPDX-License-Identifier: BSD-3-Clause */
/* A plug-in's functions are visible as they are. */
#pragma once

#define EXPORT_SYMBOL(name)     _Static_assert(1, "")
#define EXPORT_SYMBOL_GPL(name) _Static_assert(1, "")
