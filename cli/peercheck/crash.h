/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* From now on a thread that crashes in the client is judged, and ends the process quietly. */
void crash_begin(void);

/* The same of a thread that was begun with signals blocked. */
void crash_of_thread(void);
