// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

void peer_trace_begin(struct peer_trace *t, const char *call)
{
	t->call = call ? call : "ibv_reg_mr";
	t->asked = 0; /* the clients' part is long, and written before it is read */
	t->step = t->why = NULL;
	t->error = 0;
}

void peer_trace_answer(struct peer_trace *t, const char *name, int answer)
{
	unsigned i = t->asked++;
	size_t n;

	if (i >= PEER_TRACED)
		return;
	n = strnlen(name, sizeof t->client[i].name - 1);
	memcpy(t->client[i].name, name, n);
	t->client[i].name[n] = '\0';
	t->client[i].answer = answer;
}

void peer_trace_fail(struct peer_trace *t, const char *step, const char *why, int error)
{
	if (t->step)
		return;
	t->step = step;
	t->why = why;
	t->error = error;
}

/* Appends; what does not fit is left away. */
static void __attribute__((format(printf, 4, 5)))
add(char *to, size_t size, size_t *at, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(to + *at, size - *at, fmt, args);
	va_end(args);
	*at = n < 0 || *at + n >= size ? size - 1 : *at + n;
}

void peer_trace_say(const struct peer_trace *t, uint64_t addr, uint64_t length)
{
	char text[PEER_TRACE_TEXT];

	peer_trace_text(t, text, sizeof text);
	log_line(LOG_LVL_WARN, "%s of %#" PRIx64 "+%#" PRIx64 " failed: %s", t->call, addr, length,
		text);
}

void peer_trace_text(const struct peer_trace *t, char *to, size_t size)
{
	size_t at = 0;

	add(to, size, &at, "%u peer clients asked", t->asked);
	for (unsigned i = 0; i < t->asked && i < PEER_TRACED; i++)
		add(to, size, &at, "%s %s answered %d", i ? "," : ":", t->client[i].name,
			t->client[i].answer);
	if (t->step)
		add(to, size, &at, "; %s: %s", t->step, strerrordesc_np(-t->error));
	if (t->step && t->why)
		add(to, size, &at, " (%s)", t->why);
}
