/* SPDX-License-Identifier: BSD-3-Clause */
/* The weftd of a test (WEFT_DAEMON, WEFT_RUNTIME_DIR), as the kernel shows it, and its end. */
#pragma once

#include <sys/types.h>

/* What a sanitizer adds to memory is not weftd's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WEFTD_MEMORY_SCALE = 8 };
#else
enum { WEFTD_MEMORY_SCALE = 1 };
#endif

/* Its process; ends the test if there is none. */
pid_t weftd_pid(void);
/* Memory that it uses, but for its program and libraries, in KiB. */
long weftd_memory_kb(pid_t pid);
/* Its open file descriptors, and three more. */
int weftd_fds(pid_t pid);
/* Ends it by SIGKILL; on return it holds no socket any more. */
void weftd_kill(pid_t pid);
/* Ends it by `weft down`; whoever needs one next starts it. */
void weftd_down(void);
