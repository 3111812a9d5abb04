/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "hca/seg/seg.h"

/* Why memory is not mapped, in words that follow a colon. */
const char *share_words(enum share_reason why);
