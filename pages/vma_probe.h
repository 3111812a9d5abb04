/* SPDX-License-Identifier: BSD-3-Clause */
/* What an area has, found out by its second page alone. */
#pragma once

#include "pages/vma.h"

/*
 * True if v, a private and writable area of small pages, is known to have nothing of struct
 * vma_attr but perhaps mlock, a userfaultfd, or advice about huge pages.  Fast, however large the
 * process is; its second page loses what it has for an instant.  False: it has something, or less
 * than PROBE_LEAST bytes, or the kernel is too old: look with vma_attrs().
 */
bool vma_probe_plain(const struct vma *v);
