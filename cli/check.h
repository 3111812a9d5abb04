/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of weft doctor: each looks at one thing and fills in what it found. */
#pragma once

enum check_result { CHECK_OK, CHECK_WARN, CHECK_FAIL };

struct check {
	enum check_result result;
	char text[512];   /* what was found */
	char remedy[256]; /* what to do about it; empty if nothing */
};

/* Fills *c; text from the format.  remedy may be NULL. */
void check_set(struct check *c, enum check_result result, const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The machine (check_system.c).  None blocks; some fork children and wait for them. */
void check_kernel(struct check *c);
void check_cpus(struct check *c);
void check_memfd(struct check *c);
void check_peer_memory(struct check *c);
void check_userfaultfd(struct check *c);
void check_nofile(struct check *c);
void check_memlock(struct check *c);
void check_other_rdma(struct check *c);

/*
 * This installation (check_weft.c).  check_weftd_runs() blocks for 5 seconds if weftd does not
 * answer; those after it then say that they need it.
 */
void check_runtime_dir(struct check *c);
void check_weftd_file(struct check *c);
void check_weftd_runs(struct check *c);
void check_libibverbs(struct check *c);
void check_device_files(struct check *c);
