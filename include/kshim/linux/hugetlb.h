/* SPDX-License-Identifier: BSD-3-Clause */
/* Huge pages: no area is known to have them. */
#pragma once

#include <linux/mm.h>

#define is_vm_hugetlb_page(vma) ((void)(vma), 0)
