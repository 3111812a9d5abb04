/* SPDX-License-Identifier: BSD-3-Clause */
/* How a registration went: who was asked, what each said, which step failed.  For the log. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PEER_TRACED = 8, PEER_TRACE_TEXT = 1024 };

struct peer_trace {
	const char *call; /* the program's */
	unsigned asked;   /* clients; those beyond PEER_TRACED are counted alone */
	struct {
		char name[64];
		int answer;
	} client[PEER_TRACED];
	const char *step; /* that failed; NULL: none */
	const char *why;  /* more than the errno says; NULL: nothing */
	int error;        /* -errno of the registration */
};

/* Nobody was asked yet; call: by which the program registers, a constant, NULL: ibv_reg_mr. */
void peer_trace_begin(struct peer_trace *t, const char *call);

/* Notes what a client's acquire answered. */
void peer_trace_answer(struct peer_trace *t, const char *name, int answer);

/* Notes that a step failed; only the first counts.  Strings are constants. */
void peer_trace_fail(struct peer_trace *t, const char *step, const char *why, int error);

/* The log: the registration of that range failed, and how. */
void peer_trace_say(const struct peer_trace *t, uint64_t addr, uint64_t length);

/* Writes it as one line without newline into to, of size bytes. */
void peer_trace_text(const struct peer_trace *t, char *to, size_t size);
