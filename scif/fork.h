/* SPDX-License-Identifier: BSD-3-Clause */
/* What all rooms of SCIF do around a fork. */
#pragma once

/* Has them do it at each fork from now on; once. */
void watch_forks(void);
