/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs whose other end is reached by RoCEv2 packets (docs/roce.md). */
#pragma once

/*
 * Makes known to hca/run/far.h who reaches other hosts, once; from then on queue pairs may be so
 * connected.  Cheap: no socket is opened before a path leads away.  0, or -ENOSPC.
 */
int roce_start(void);
