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
