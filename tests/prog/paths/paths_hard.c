// SPDX-License-Identifier: BSD-3-Clause
/*
 * The path shim under conditions that programs do not choose: before constructors have run, in a
 * signal handler, in many threads at once, after fork, on a small stack; and what it costs.
 * Run under weft run, with a tree.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	THREADS = 8,
	ROUNDS = 300,
	SIGNALS = 200,
	CALLS = 20000,
	BATCHES = 20,
	MAX_BATCHES = 200,
	EXTRA_NS = 500
};

static const char ours[] = "/sys/class/infiniband/weft0/node_type";
static const char node[] = "/dev/infiniband/uverbs0";
static int first_stat = -2, first_open = -2;
extern int early_stat, early_open; /* paths_early.c */
static atomic_int handled, handler_failed;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: failed: %s\n", __LINE__, #what);                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* The executable's own first function: not even libc is initialised, nor the environment known. */
static void before_all(void)
{
	struct stat st;

	first_stat = stat(ours, &st) ? errno : 0;
	first_open = open("/dev/null", O_RDONLY | O_CLOEXEC);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = before_all;

static bool look(void)
{
	struct stat st;
	char text[16];
	int fd = open(ours, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && read(fd, text, sizeof text) == 6 && !memcmp(text, "1: CA\n", 6);

	if (fd >= 0)
		close(fd);
	return ok && !stat(node, &st) && S_ISCHR(st.st_mode) && !access(node, R_OK | W_OK) &&
	       stat("/none", &st) == -1 && errno == ENOENT;
}

static void *look_often(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		CHECK(look());
	return arg;
}

static void in_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, look_often, NULL));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	if (!look())
		atomic_store(&handler_failed, 1);
	atomic_fetch_add(&handled, 1);
	errno = saved;
}

/* Signals that come while the shim itself is at work. */
static void in_handlers(void)
{
	struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (atomic_load(&handled) < SIGNALS)
		CHECK(look());
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(!atomic_load(&handler_failed));
}

static void after_fork(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(look() ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	pid = vfork();
	if (pid == 0) {
		int fd = open(ours, O_RDONLY);

		_exit(fd >= 0 ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void *ordinary_calls(void *arg)
{
	struct stat st;

	CHECK(!stat("/", &st) && !access("/", F_OK));
	CHECK(open("/none", O_RDONLY) == -1);
	return arg;
}

/* Calls on ordinary paths must not need a big stack. */
static void on_small_stack(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstacksize(&attr, 16384));
	CHECK(!pthread_create(&thread, &attr, ordinary_calls, NULL));
	CHECK(!pthread_join(thread, NULL));
}

static double batch_ns(int (*call)(const char *, int))
{
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < CALLS; i++)
		call("/", F_OK);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / CALLS;
}

/* A busy machine makes either slow for a while, but not for ever. */
static void cost(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	int (*plain)(const char *, int) = dlsym(libc, "access");
	double with = 1e9, without = 1e9, t;

	CHECK(plain && plain != access);
	for (int i = 0; i < BATCHES || (i < MAX_BATCHES && with - without >= EXTRA_NS); i++) {
		t = batch_ns(access);
		with = t < with ? t : with;
		t = batch_ns(plain);
		without = t < without ? t : without;
	}
	printf("access(): %.0f ns with the shim, %.0f ns without\n", with, without);
	CHECK(with - without < EXTRA_NS);
}

int main(void)
{
	CHECK(first_stat == ENOENT && first_open >= 0);
	CHECK(early_stat == 0 && early_open >= 0);
	errno = 4242;
	CHECK(!access(ours, R_OK) && errno == 4242);
	CHECK(look());
	on_small_stack();
	in_threads();
	in_handlers();
	after_fork();
	cost();
	return 0;
}
