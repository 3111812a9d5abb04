/* SPDX-License-Identifier: BSD-3-Clause */
/* What the attachment does around a fork(2); rdv/rdv.h has what others call. */
#pragma once

/* Registers the handlers with pthread_atfork(3), once.  -ENOMEM. */
int fork_watch(void);
