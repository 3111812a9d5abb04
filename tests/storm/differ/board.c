// SPDX-License-Identifier: BSD-3-Clause
#include "board.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 100, LIFE = 1 << 20 /* meetings of one */ };

struct board *board;

void board_make(void)
{
	board = mmap(
		NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		_exit(99);
}

void board_clear(uint32_t without)
{
	memset(board, 0, sizeof *board);
	board->without = without;
}

static void write_down(const char *fmt, va_list ap)
{
	if (atomic_exchange(&board->failed, 1))
		return;
	vsnprintf(board->text, BOARD_TEXT, fmt, ap);
	atomic_store(&board->told, 1);
}

void board_tell(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_down(fmt, ap);
	va_end(ap);
}

void board_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_down(fmt, ap);
	va_end(ap);
	_exit(1);
}

static void futex_sleep(_Atomic uint32_t *word, uint32_t seen)
{
	struct timespec t = {.tv_nsec = LOOK_MS * 1000000};

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 64, NULL, NULL, 0);
}

void board_enter(unsigned link, unsigned end, uint32_t life)
{
	atomic_store(&board->link[link].room[life % ROOMS].at[end], life * LIFE);
}

bool board_meet(
	unsigned link, unsigned end, uint32_t life, const struct note *mine, struct note *theirs)
{
	struct board_link *l = &board->link[link];
	struct room *r = &l->room[life % ROOMS];
	uint32_t now = atomic_load(&r->at[end]) + 1, other;
	bool over = false;

	r->note[end][now & 1] = *mine;
	atomic_store(&r->at[end], now);
	futex_wake(&r->at[end]);
	/* Once more after the end of its life: it may have come, and gone on, before that. */
	while ((other = atomic_load(&r->at[!end])) < now) {
		if (over)
			return false;
		if (atomic_load(&board->failed))
			_exit(0);
		over = atomic_load(&l->dead) != life;
		if (!over)
			futex_sleep(&r->at[!end], other);
	}
	*theirs = r->note[!end][now & 1];
	return true;
}
