// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check_weft.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/common/dirs.h"
#include "cli/common/fabric.h"
#include "cli/common/say.h"
#include "rdv/admin.h"
#include "rdv/fabrics.h"
#include "rdv/paths.h"
#include "rdv/topology.h"

enum { CHILD_SECONDS = 10, ANSWER = 256 };

/* Why what needs weftd is not checked: one cause is told once.  NULL: it is. */
static const char *cause;
static bool no_node;    /* weftd can be asked, and programs find no device */
static bool no_daemon;  /* no weftd could be started */
static int32_t own_pid; /* of the weftd of this fabric; 0: there is none, or it cannot be seen */

bool check_can_ask_weftd(void)
{
	return !cause;
}

static bool has_cause(struct check *c)
{
	if (cause || no_node)
		check_set(c, CHECK_WARN, NULL, "not checked: %s",
			cause ? cause : "WEFT_NODE is no node");
	return cause || no_node;
}

/* Creates a file in dir, writes to it and removes it: 0 or -errno. */
static int try_file(const char *dir)
{
	char path[PATH_MAX + 32];
	int fd, rc = 0;

	snprintf(path, sizeof path, "%s/doctor-%d", dir, (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, "", 1) != 1)
		rc = -errno;
	close(fd);
	if (unlink(path) && !rc)
		rc = -errno;
	return rc;
}

static void check_existing_dir(struct check *c, const char *path, bool made_now)
{
	/* To change the mode of what is open to others may be to change that of /tmp. */
	static const char other[] = "set WEFT_RUNTIME_DIR to a directory of your own, of mode 700";
	struct stat st;
	int rc;

	if (lstat(path, &st))
		check_set(c, CHECK_FAIL, other, "%.300s: %s", path, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		check_set(c, CHECK_FAIL, other, "%.300s is %s", path,
			S_ISLNK(st.st_mode) ? "a symbolic link" : "not a directory");
	else if (st.st_uid != geteuid())
		check_set(c, CHECK_FAIL, other, "%.300s belongs to user %u", path, st.st_uid);
	else if (st.st_mode & 077)
		check_set(c, CHECK_FAIL, other, "%.300s is open to others (mode %o)", path,
			st.st_mode & 07777);
	else if ((rc = try_file(path)) == -EACCES)
		check_set(c, CHECK_FAIL, "chmod 700 it", "%.300s: no file can be made there: %s",
			path, strerror(-rc));
	else if (rc)
		check_set(c, CHECK_FAIL, other, "%.300s: no file can be made there: %s", path,
			strerror(-rc));
	else
		check_set(c, CHECK_OK, NULL, "%.300s%s", path, made_now ? " (made now)" : "");
}

void check_runtime_dir(struct check *c)
{
	char path[PATH_MAX];
	struct stat st;
	int rc = rdv_dir_path(path, sizeof path);
	bool make = !rc && lstat(path, &st) && errno == ENOENT;

	if (rc == -EINVAL)
		check_set(c, CHECK_FAIL, "set it to a path that begins with /",
			"WEFT_RUNTIME_DIR=%.200s is relative", secure_getenv("WEFT_RUNTIME_DIR"));
	else if (rc)
		check_set(c, CHECK_FAIL, "set WEFT_RUNTIME_DIR to a shorter path",
			"no runtime directory: %s", strerror(-rc));
	else if (make && (rc = rdv_runtime_dir(path, sizeof path)))
		check_set(c, CHECK_FAIL, "set WEFT_RUNTIME_DIR to a directory of your own",
			"%.300s: %s", path, strerror(-rc));
	else
		check_existing_dir(c, path, make);
	if (c->result == CHECK_FAIL)
		cause = "there is no runtime directory";
}

/*
 * Runs a program with its standard output in answer, for at most CHILD_SECONDS; its exit code,
 * or -1.
 */
static int ask(char *const argv[], char answer[ANSWER])
{
	int out[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	answer[0] = '\0';
	if (pipe2(out, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		dup2(out[1], 1);
		execv(argv[0], argv);
		_exit(EXIT_NO_CMD);
	}
	close(out[1]);
	while (pid > 0 && len < ANSWER - 1 &&
		(n = read(out[0], answer + len, ANSWER - 1 - len)) > 0)
		len += n;
	answer[len] = '\0';
	answer[strcspn(answer, "\n")] = '\0';
	close(out[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Fills in that it failed if it did. */
static bool find_dirs(struct check *c, struct cli_dirs *dirs)
{
	int rc = cli_find_dirs(dirs);

	if (rc)
		check_set(c, CHECK_FAIL, "mount /proc", "cannot find out where weft lies: %s",
			strerror(-rc));
	return !rc;
}

static void look_at_daemon(struct check *c)
{
	const char *named = secure_getenv("WEFT_DAEMON");
	char answer[ANSWER];
	struct cli_dirs dirs;
	char *argv[] = {named && *named ? (char *)named : dirs.weftd, "--version", NULL};

	if (!find_dirs(c, &dirs))
		return;
	if (access(argv[0], X_OK)) {
		check_set(c, CHECK_FAIL,
			named && *named ? "correct or unset WEFT_DAEMON"
					: "build or install Weft anew",
			"%.300s: %s", argv[0], strerror(errno));
		return;
	}
	if (ask(argv, answer))
		check_set(c, CHECK_FAIL, "build or install Weft anew", "%.300s does not run",
			argv[0]);
	else if (strcmp(answer, "weftd " WEFT_VERSION))
		check_set(c, CHECK_FAIL, "build or install Weft anew",
			"%.200s is '%.60s', this is weft %s", argv[0], answer, WEFT_VERSION);
	else
		check_set(c, CHECK_OK, NULL, "%.300s, version %s", argv[0], WEFT_VERSION);
}

void check_weftd_file(struct check *c)
{
	look_at_daemon(c);
	no_daemon = c->result == CHECK_FAIL;
}

static bool autostart(void)
{
	const char *value = secure_getenv("WEFT_AUTOSTART");

	return !value || strcmp(value, "0");
}

static bool name_is_wrong(struct check *c, const char *fabric)
{
	if (rdv_fabric_name_ok(fabric))
		return false;
	check_set(c, CHECK_FAIL,
		"use 1 to 32 letters, digits, '_', '.', '-', neither '.' nor 'default-' in front, "
		"or unset it",
		"WEFT_FABRIC=%.80s is no name of a fabric", fabric);
	cause = "WEFT_FABRIC names no fabric";
	return true;
}

/* A weftd that runs knows the nodes of its topology. */
static bool is_missing(int number)
{
	struct proto_node_found found;
	char name[16];

	snprintf(name, sizeof name, "%010d", number); /* a number, not an id like one */
	return number > 0 && rdv_find_node(NULL, name, &found) == -ENOENT;
}

static void check_node(struct check *c, const char *fabric, bool runs)
{
	const char *node = secure_getenv("WEFT_NODE");
	const int number = rdv_node_number(node);
	char remedy[sizeof c->remedy];

	snprintf(remedy, sizeof remedy, "correct or unset it: weft topo -F %s lists the nodes",
		fabric);
	if (number < 0)
		check_set(c, CHECK_FAIL, "correct or unset it; names are for weft run --node",
			"WEFT_NODE=%.80s is neither a number from 0 to 65535 nor weft0", node);
	else if (runs && is_missing(number))
		check_set(c, CHECK_FAIL, remedy, "WEFT_NODE=%d is no node of '%s'", number, fabric);
	no_node = c->result == CHECK_FAIL;
}

static void check_answer(struct check *c, const char *fabric, int rc, int32_t pid)
{
	if (!rc)
		check_set(c, CHECK_OK, NULL, "'%s' is served by weftd, pid %d", fabric, pid);
	else if (rc == -ENOTCONN && autostart() && no_daemon)
		check_set(c, CHECK_WARN, NULL, "'%s': no weftd, and none can be started", fabric);
	else if (rc == -ENOTCONN && autostart())
		check_set(c, CHECK_OK, NULL, "'%s': weftd starts when it is needed", fabric);
	else if (rc == -ENOTCONN)
		check_set(c, CHECK_WARN, "run 'weft up'",
			"'%s': no weftd, and WEFT_AUTOSTART=0 keeps programs from starting it",
			fabric);
	else
		check_set(c, CHECK_FAIL,
			rc == -ETIMEDOUT ? "weftd is stopped? continue or kill it"
					 : "end the old weftd, or set WEFT_RUNTIME_DIR",
			"'%s': %s", fabric, strerror(-rc));
	if (c->result == CHECK_WARN)
		cause = "no weftd runs";
	else if (c->result == CHECK_FAIL)
		cause = rc == -ETIMEDOUT ? "weftd does not answer" : "weftd cannot be asked";
}

void check_weftd_runs(struct check *c)
{
	const char *fabric = cli_fabric_name(NULL);
	int rc;

	if (name_is_wrong(c, fabric) || has_cause(c))
		return;
	rc = rdv_ping(NULL, &own_pid);
	check_answer(c, fabric, rc, own_pid);
	if (c->result != CHECK_FAIL)
		check_node(c, fabric, !rc);
}

/* Takes ours out, though it be stopped. */
static size_t without_ours(struct rdv_fabric *all, size_t n)
{
	size_t left = 0;

	if (!own_pid)
		return n;
	for (size_t i = 0; i < n; i++)
		if (all[i].pid != own_pid || all[i].uid != geteuid() ||
			strcmp(all[i].name, cli_fabric_name(NULL)))
			all[left++] = all[i];
	return left;
}

void check_other_fabrics(struct check *c)
{
	struct rdv_fabric all[RDV_FABRICS_MAX];
	size_t n = without_ours(all, rdv_fabrics_find(all, 0));
	bool alike = false;
	char text[400];

	for (size_t i = 0; i < n; i++)
		alike |= all[i].uid == geteuid() && !strcmp(all[i].name, cli_fabric_name(NULL));
	rdv_fabrics_text(text, sizeof text, all, n);
	if (alike)
		check_set(c, CHECK_WARN,
			"for one fabric give all shells the same XDG_RUNTIME_DIR or "
			"WEFT_RUNTIME_DIR",
			"%s: one has the name of ours, in another runtime directory", text);
	else
		check_set(c, CHECK_OK, NULL, "%s", n ? text : "none on this host");
}

/* In a child: loads the library as a program does and writes the names of its devices. */
static void list_devices(const char *path, int out)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void **(*get_list)(int *) = lib ? dlsym(lib, "ibv_get_device_list") : NULL;
	const char *(*get_name)(void *) = lib ? dlsym(lib, "ibv_get_device_name") : NULL;
	void **list = get_list && get_name ? get_list(NULL) : NULL;

	if (!lib)
		dprintf(out, "%s", dlerror());
	for (; list && *list; list++)
		dprintf(out, "%s ", get_name(*list));
}

/* The text of the first line of the library's log, without "weft[pid]: level: ". */
static void first_line(int log, char text[ANSWER])
{
	char line[ANSWER];
	ssize_t n = log < 0 ? 0 : pread(log, line, sizeof line - 1, 0);
	char *at = line;

	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < 2 && strstr(at, ": "); i++)
		at = strstr(at, ": ") + 2;
	strcpy(text, at);
}

/* answer: the names of its devices; log: what it says, -1 where there is no room for it. */
static void ask_library(const char *path, int log, char answer[ANSWER])
{
	int out[2];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	answer[0] = '\0';
	if (pipe2(out, O_CLOEXEC))
		return;
	pid = fork();
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		if (log >= 0 && dup2(log, STDERR_FILENO) >= 0)
			unsetenv("WEFT_LOG");
		list_devices(path, out[1]);
		_exit(0);
	}
	close(out[1]);
	while (len < ANSWER - 1 && (n = read(out[0], answer + len, ANSWER - 1 - len)) > 0)
		len += n;
	answer[len] = '\0';
	close(out[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

void check_libibverbs(struct check *c)
{
	struct cli_dirs dirs;
	char path[PATH_MAX + 32], answer[ANSWER], said[ANSWER];
	int log;

	if (has_cause(c) || !find_dirs(c, &dirs))
		return;
	snprintf(path, sizeof path, "%s/libibverbs.so.1", dirs.lib);
	log = memfd_create("log", MFD_CLOEXEC);
	ask_library(path, log, answer);
	first_line(log, said);
	if (log >= 0)
		close(log);
	if (strstr(answer, "weft0"))
		check_set(c, CHECK_OK, NULL, "%.300s lists weft0", path);
	else if (access(path, R_OK))
		check_set(c, CHECK_FAIL, "build or install Weft anew", "%.300s: %s", path,
			strerror(errno));
	else if (*said)
		check_set(c, CHECK_FAIL, NULL, "%.200s does not list weft0: %s", path, said);
	else
		check_set(c, CHECK_FAIL, "run 'WEFT_LOG=debug weft run ibv_devices' to see why",
			"%.200s does not list weft0: %.100s", path,
			*answer ? answer : "no devices");
}

void check_device_files(struct check *c)
{
	static char script[] = "test -c /dev/infiniband/uverbs0 -a -r /dev/infiniband/uverbs0 && "
			       "cat /sys/class/infiniband/weft0/ports/1/state 2>/dev/null";
	char answer[ANSWER];
	struct cli_dirs dirs;
	char *argv[] = {dirs.self, "run", "--", "/bin/sh", "-c", script, NULL};

	if (has_cause(c) || !find_dirs(c, &dirs))
		return;
	if (!ask(argv, answer) && strstr(answer, "ACTIVE"))
		check_set(c, CHECK_OK, NULL, "/dev/infiniband/uverbs0 is there, port 1 is %s",
			answer);
	else
		check_set(c, CHECK_FAIL,
			"run 'WEFT_LOG=debug weft run ls /dev/infiniband' to see why",
			"/dev/infiniband/uverbs0 does not show under 'weft run'");
}
