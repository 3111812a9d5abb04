/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions behind a file descriptor (hca_mr_from_fd()). */
#pragma once

struct hca_mr;

/* Such a region is gone: unmaps what was mapped for it; 0. */
int mr_fd_drop(struct hca_mr *mr);
