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

enum { LOOK_MS = 100 };

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

struct note board_meet(unsigned link, unsigned end, const struct note *mine)
{
	struct board_link *l = &board->link[link];
	uint32_t now = atomic_load(&l->at[end]) + 1, other;

	l->note[end][now & 1] = *mine;
	atomic_store(&l->at[end], now);
	futex_wake(&l->at[end]);
	while ((other = atomic_load(&l->at[!end])) < now) {
		if (atomic_load(&board->failed))
			_exit(0);
		futex_sleep(&l->at[!end], other);
	}
	return l->note[!end][now & 1];
}
