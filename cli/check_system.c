// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/check.h"
#include "pages/uffd.h"

enum { KERNEL_MAJOR = 5, KERNEL_MINOR = 10, FEW_FILES = 1024, USER_MODE_ONLY = 1 };

void check_kernel(struct check *c)
{
	struct utsname u;
	int major = 0, minor = 0;

	uname(&u);
	sscanf(u.release, "%d.%d", &major, &minor);
	if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR))
		check_set(c, CHECK_OK, NULL, "Linux %s", u.release);
	else
		check_set(
			c, CHECK_FAIL, "use Linux 5.10 or newer", "Linux %s is too old", u.release);
}

void check_cpus(struct check *c)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) ? (int)sysconf(_SC_NPROCESSORS_ONLN)
						       : CPU_COUNT(&set);

	if (n > 1)
		check_set(c, CHECK_OK, NULL, "%d", n);
	else
		check_set(c, CHECK_WARN, "for low latency give two or more",
			"one: waiting programs sleep at once");
}

static int sealed_memfd(void)
{
	int fd = memfd_create("weft-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, 4096) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		close(fd);
		return -errno;
	}
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	munmap(p, 4096);
	return 0;
}

void check_memfd(struct check *c)
{
	int rc = sealed_memfd();

	if (!rc)
		check_set(c, CHECK_OK, NULL, "sealed and mapped");
	else
		check_set(c, CHECK_FAIL, "allow memfd_create and sealing (seccomp, memory limits)",
			"no sealed memfd: %s", strerror(-rc));
}

/* A child that waits for its end. */
static pid_t start_target(int *gate)
{
	int go[2], ready[2];
	char byte;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) || pipe2(ready, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (write(ready[1], "", 1) == 1 && read(go[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(ready[1]);
	close(go[0]);
	if (pid > 0 && read(ready[0], &byte, 1) != 1)
		pid = -1;
	close(ready[0]);
	*gate = go[1];
	return pid;
}

/* Whether one child can read another's memory, as peers do: 0 or -errno. */
static int read_sibling(void)
{
	static char secret = 1;
	char copy = 0;
	struct iovec local = {&copy, 1}, remote = {&secret, 1};
	int gate = -1, status;
	pid_t target = start_target(&gate), reader;

	if (target < 0)
		return -ECHILD;
	reader = fork();
	if (reader == 0)
		_exit(process_vm_readv(target, &local, 1, &remote, 1, 0) == 1 ? 0 : errno & 0xff);
	if (reader < 0 || waitpid(reader, &status, 0) != reader)
		status = ECHILD << 8;
	close(gate);
	waitpid(target, NULL, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

static int yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (file && fscanf(file, "%d", &scope) != 1)
		scope = 0;
	if (file)
		fclose(file);
	return scope;
}

void check_peer_memory(struct check *c)
{
	int rc = read_sibling();

	if (!rc)
		check_set(c, CHECK_OK, NULL, "process_vm_readv works between processes");
	else if (yama_scope())
		check_set(c, CHECK_WARN, "sysctl kernel.yama.ptrace_scope=0 makes it faster",
			"agents copy: process_vm_readv between processes: %s (Yama ptrace_scope "
			"%d)",
			strerror(-rc), yama_scope());
	else
		check_set(c, CHECK_WARN,
			"allowing process_vm_readv and process_vm_writev (seccomp) makes it faster",
			"agents copy: process_vm_readv between processes: %s", strerror(-rc));
}

void check_userfaultfd(struct check *c)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	const char *mode = "available, full mode";
	static const char *const limits[] = {
		[UFFD_NOTHING] = "; before Linux 5.7, beside threads all memory is copied",
		[UFFD_ANONYMOUS] =
			("; before Linux 5.19, beside threads memory is mapped for peers "
			 "once, and copied if it is registered again"),
		[UFFD_PRESENT] = "; before Linux 6.4, all pages are filled in first",
		[UFFD_ALL] = "",
	};

	if (fd < 0) {
		fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
		mode = "available, user mode only";
	}
	if (fd < 0) {
		check_set(c, CHECK_OK, NULL,
			"not available, and not needed: copies go through the kernel");
		return;
	}
	check_set(c, CHECK_OK, NULL, "%s%s", mode, limits[uffd_agree(fd)]);
	close(fd);
}

void check_nofile(struct check *c)
{
	struct rlimit r;

	getrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_cur >= FEW_FILES)
		check_set(c, CHECK_OK, NULL, "%llu allowed", (unsigned long long)r.rlim_cur);
	else
		check_set(c, CHECK_WARN, "ulimit -n 1024 or more", "only %llu allowed",
			(unsigned long long)r.rlim_cur);
}

void check_memlock(struct check *c)
{
	struct rlimit r;

	getrlimit(RLIMIT_MEMLOCK, &r);
	if (r.rlim_cur == RLIM_INFINITY)
		check_set(c, CHECK_OK, NULL, "not needed (unlimited)");
	else
		check_set(c, CHECK_OK, NULL, "not needed (limit %llu KiB)",
			(unsigned long long)r.rlim_cur / 1024);
}

void check_other_rdma(struct check *c)
{
	DIR *dir = opendir("/sys/class/infiniband");
	char names[256] = "";
	struct dirent *entry;

	/* In the environment of "weft env" the directory shows our own, too. */
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "weft0") &&
			strlen(names) + strlen(entry->d_name) + 2 < sizeof names)
			sprintf(names + strlen(names), "%s%s", *names ? " " : "", entry->d_name);
	if (dir)
		closedir(dir);
	if (*names)
		check_set(c, CHECK_OK, NULL, "%s: hidden from programs on Weft", names);
	else
		check_set(c, CHECK_OK, NULL, "none on this machine");
}
