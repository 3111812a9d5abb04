/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For small test programs.  A test calls t_start() first; what follows runs in a child of a
 * supervisor, which ends it at its deadline, ends whatever processes it left behind (an
 * autostarted weftd too), removes its directory and passes its exit status on, also when the
 * test crashed.  A check that fails prints file:line and exits 1.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { T_SKIP = 77, T_DEADLINE_MS = 20000 };

/*
 * Starts the test: call it in main() before there are threads or fds to keep.  Sets
 * WEFT_RUNTIME_DIR to a new directory, ignores SIGPIPE.  The whole test may take so many seconds.
 */
void t_start(unsigned seconds);

/* The directory of this test, WEFT_RUNTIME_DIR; it goes at the end with all that is in it. */
const char *t_dir(void);

/* Ends the test: it cannot run here, and why. */
void t_skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Ends the process that calls it: it failed. */
void t_fail_at(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

/* Parts of the macros below. */
void t_equal_at(const char *file, int line, const char *what, int64_t got, int64_t want);
void t_ok_at(const char *file, int line, const char *what, int64_t rc);

#define T_FAIL(...) t_fail_at(__FILE__, __LINE__, __VA_ARGS__)
#define T_CHECK(cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			T_FAIL("does not hold: %s", #cond);                                        \
	} while (0)
/* Integers that must be equal; the message shows both. */
#define T_EQUAL(got, want) t_equal_at(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(want))
/* A call that answers a negative errno when it fails. */
#define T_OK(call) t_ok_at(__FILE__, __LINE__, #call, (int64_t)(call))
/* A call that answers -1 and sets errno. */
#define T_SYS(call)                                                                                \
	({                                                                                         \
		__typeof__(call) t_rc_ = (call);                                                   \
		if (t_rc_ == (__typeof__(call))-1)                                                 \
			t_ok_at(__FILE__, __LINE__, #call, -(int64_t)errno);                       \
		t_rc_;                                                                             \
	})

/* ---- processes ---- */

/* A child with a pipe in either direction. */
struct t_child {
	pid_t pid;
	int to;   /* the child reads it as in */
	int from; /* the child writes it as out */
};

/*
 * Forks a child that runs run(in, out, arg) and exits 0 after it.  The child dies with its
 * parent.
 */
void t_fork(struct t_child *c, void (*run)(int in, int out, void *arg), void *arg);

/* Starts a program (found by PATH) with in as stdin and out as stdout. */
void t_exec(struct t_child *c, char *const argv[]);

/* Waits for its end and closes the pipes: exit status, or 128 + signal; fails at the deadline. */
int t_wait(struct t_child *c);

/* Ends it by SIGKILL and waits. */
void t_kill(struct t_child *c);

/* Stops it and waits until it is stopped; lets it go on. */
void t_stop(struct t_child *c);
void t_continue(struct t_child *c);

/* Writes or reads size bytes; fails the test at the deadline or if the other side is gone. */
void t_tell(int fd, const void *p, size_t size);
void t_hear(int fd, void *p, size_t size);

/* Messages without contents: "go on", and waiting for one. */
void t_signal(int fd);
void t_await(int fd);

/* ---- waiting and counting ---- */

/* CLOCK_MONOTONIC in ms. */
uint64_t t_ms(void);

/* Asks cond every ms until it holds; false if it does not within ms. */
bool t_until(bool (*cond)(void *arg), void *arg, unsigned ms);

/* Open file descriptors of this process. */
unsigned t_fds(void);

/* Fails if fewer or more are open than before; prints what each one is. */
void t_same_fds(unsigned before);
