/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake devices, each behind a kernel interface of its own. */
#pragma once

#include "include/weft/peercheck.h"

extern const struct weft_peer_device nvidia_device, kfd_device, vma_device;
