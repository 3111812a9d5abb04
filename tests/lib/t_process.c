// SPDX-License-Identifier: BSD-3-Clause
/* Children of a test, and talking to them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t.h"

struct pipes {
	int in[2], out[2];
};

static void begin(struct t_child *c, struct pipes *p)
{
	T_SYS(pipe2(p->in, O_CLOEXEC));
	T_SYS(pipe2(p->out, O_CLOEXEC));
	c->pid = T_SYS(fork());
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(p->in[1]);
		close(p->out[0]);
		return;
	}
	close(p->in[0]);
	close(p->out[1]);
	c->to = p->in[1];
	c->from = p->out[0];
}

void t_fork(struct t_child *c, void (*run)(int in, int out, void *arg), void *arg)
{
	struct pipes p;

	begin(c, &p);
	if (c->pid)
		return;
	run(p.in[0], p.out[1], arg);
	exit(0);
}

void t_exec(struct t_child *c, char *const argv[])
{
	struct pipes p;

	begin(c, &p);
	if (c->pid)
		return;
	if (dup2(p.in[0], STDIN_FILENO) < 0 || dup2(p.out[1], STDOUT_FILENO) < 0)
		_exit(126);
	execvp(argv[0], argv);
	_exit(127);
}

static int await_child(struct t_child *c, int flags)
{
	uint64_t end = t_ms() + T_DEADLINE_MS;
	int status;
	pid_t got;

	while (!(got = T_SYS(waitpid(c->pid, &status, WNOHANG | flags)))) {
		if (t_ms() > end)
			T_FAIL("child %d is still running", (int)c->pid);
		poll(NULL, 0, 1);
	}
	return status;
}

int t_wait(struct t_child *c)
{
	int status;

	close(c->to);
	status = await_child(c, 0);
	close(c->from);
	c->pid = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void t_kill(struct t_child *c)
{
	T_SYS(kill(c->pid, SIGKILL));
	t_wait(c);
}

void t_stop(struct t_child *c)
{
	T_SYS(kill(c->pid, SIGSTOP));
	if (!WIFSTOPPED(await_child(c, WUNTRACED)))
		T_FAIL("child %d ended instead of stopping", (int)c->pid);
}

void t_continue(struct t_child *c)
{
	T_SYS(kill(c->pid, SIGCONT));
}

static void ready(int fd, short events, uint64_t end)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t now = t_ms();

	if (now >= end || T_SYS(poll(&p, 1, end - now)) == 0)
		T_FAIL("nothing came for %d ms", T_DEADLINE_MS);
}

void t_tell(int fd, const void *p, size_t size)
{
	uint64_t end = t_ms() + T_DEADLINE_MS;

	for (size_t done = 0; done < size;) {
		ready(fd, POLLOUT, end);
		done += T_SYS(write(fd, (const char *)p + done, size - done));
	}
}

void t_hear(int fd, void *p, size_t size)
{
	uint64_t end = t_ms() + T_DEADLINE_MS;
	ssize_t n;

	for (size_t done = 0; done < size; done += n) {
		ready(fd, POLLIN, end);
		n = T_SYS(read(fd, (char *)p + done, size - done));
		if (!n)
			T_FAIL("the other side is gone");
	}
}

void t_signal(int fd)
{
	t_tell(fd, "", 1);
}

void t_await(int fd)
{
	char c;

	t_hear(fd, &c, 1);
}
