// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/peermem_fake.h"

#include <stddef.h>
#include <string.h>

#include "base/lock.h"

struct fake fake;
static struct lock lock;

void fake_reset(void)
{
	fake = (struct fake){
		.answer[FAKE_ACQUIRE] = 1,
		.page_size = 4096,
		.entries = 2,
		.entry = {{0x10000, 8192}, {0x20000, 8192}},
	};
}

static void note(char letter)
{
	size_t n;

	lock_take(&lock);
	n = strlen(fake.calls);
	if (n + 1 < sizeof fake.calls)
		fake.calls[n] = letter;
	lock_drop(&lock);
}

const char *fake_calls(void)
{
	static char calls[sizeof fake.calls];

	lock_take(&lock);
	memcpy(calls, fake.calls, sizeof calls);
	memset(fake.calls, 0, sizeof fake.calls);
	lock_drop(&lock);
	return calls;
}

int fake_called(enum fake_call call)
{
	void (*inside)(void) = fake.inside[call];

	note("agmupsr"[call]);
	fake.inside[call] = NULL;
	if (inside)
		inside();
	return fake.answer[call];
}
