/* SPDX-License-Identifier: BSD-3-Clause */
/* A fork: what the child inherits is private, as if nothing had ever been mapped. */
#pragma once

/* Has forks watched from now on.  Lock: share.lock, which each fork takes. */
void share_watch_fork(void);
