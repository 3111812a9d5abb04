/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>

/* From now on a thread that crashes in the client is judged, and ends the process quietly. */
void crash_begin(void);

/* The same of a thread that was begun with signals blocked. */
void crash_of_thread(void);

/*
 * Is it the device that runs in this thread, and not the client, which is in that function, or in
 * none?  Of the frames the last one counts that is in either.
 */
bool crash_is_of_device(const char *in);
