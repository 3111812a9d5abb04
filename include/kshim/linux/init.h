/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections that a plug-in does not have. */
#pragma once

#define __init
#define __exit
#define __initdata
#define __exitdata
