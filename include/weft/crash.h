/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program may tell the power-failure simulator, weft-crash(1).  It needs no library for
 * that: where it does not run under `weft crash run`, these calls do nothing.
 */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of libweftcrash.so, which `weft crash run` preloads. */
extern void weft_crash_note_persist(const void *addr, size_t len) __attribute__((weak));
extern int weft_crash_note_mark(const char *text) __attribute__((weak));

/*
 * The calling program has made [addr, addr+len) of its memory durable by means that the simulator
 * does not see: instructions of the CPU of its own.  Not needed with msync(2), fsync(2), libpmem.
 */
static inline void weft_crash_persist(const void *addr, size_t len)
{
	if (weft_crash_note_persist)
		weft_crash_note_persist(addr, len);
}

/*
 * Notes a line of text, of at most 256 bytes, in the journal: what was promised to somebody at this
 * moment, for example.  The recovery check finds the lines from before the crash in the file that
 * $WEFT_CRASH_MARKS names.
 */
static inline void weft_crash_mark(const char *text)
{
	if (weft_crash_note_mark)
		weft_crash_note_mark(text);
}

#ifdef __cplusplus
}
#endif
