/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the machine.  None blocks; some fork children and wait for them. */
#pragma once

struct check;

void check_kernel(struct check *c);
void check_cpus(struct check *c);
void check_memfd(struct check *c);
void check_peer_memory(struct check *c);
void check_userfaultfd(struct check *c);
void check_nofile(struct check *c);
void check_memlock(struct check *c);
void check_other_rdma(struct check *c);
