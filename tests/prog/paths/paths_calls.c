// SPDX-License-Identifier: BSD-3-Clause
/*
 * Calls every function that the path shim wraps, by each of its names, on each argument, and
 * prints what came of it, so that two runs can be compared: with the shim and without, on
 * ordinary paths; on device paths with it and on the tree behind them without.
 * An argument DIR//NAME with -a calls the functions that take a directory fd with DIR's.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *subject;
static int at = AT_FDCWD;

/* The function as the program finds it; ends the test if there is none. */
static void *fn(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (!found) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	errno = 4242; /* to see whether a success touches it */
	return found;
}

static void result(const char *name, long rc)
{
	printf("%s: %ld errno %d\n", name, rc, errno);
}

static void print_stat(const char *name, int rc, const struct stat *st)
{
	result(name, rc);
	if (!rc)
		printf("  mode %o size %ld ino %lu dev %lu rdev %u:%u\n", st->st_mode,
			(long)st->st_size, (unsigned long)st->st_ino, (unsigned long)st->st_dev,
			major(st->st_rdev), minor(st->st_rdev));
}

static void call_stat(void)
{
	static const char *const plain[] = {"stat", "stat64", "lstat", "lstat64"};
	static const char *const old[] = {"__xstat", "__xstat64", "__lxstat", "__lxstat64"};
	static const char *const by_fd[] = {"fstatat", "fstatat64"};
	static const char *const old_by_fd[] = {"__fxstatat", "__fxstatat64"};
	struct stat st;

	for (size_t i = 0; i < 4; i++) {
		int (*call)(const char *, struct stat *) = fn(plain[i]);

		print_stat(plain[i], call(subject, &st), &st);
	}
	for (size_t i = 0; i < 4; i++) {
		int (*call)(int, const char *, struct stat *) = fn(old[i]);

		print_stat(old[i], call(0, subject, &st), &st);
		result("bad version", call(77, "/", &st));
	}
	for (size_t i = 0; i < 4; i++) {
		int (*call)(int, const char *, struct stat *, int) = fn(by_fd[i / 2]);

		print_stat(by_fd[i / 2],
			call(at, subject, &st, i % 2 ? AT_SYMLINK_NOFOLLOW : AT_NO_AUTOMOUNT), &st);
	}
	for (size_t i = 0; i < 4; i++) {
		int (*call)(int, int, const char *, struct stat *, int) = fn(old_by_fd[i / 2]);

		print_stat(old_by_fd[i / 2],
			call(0, at, subject, &st, i % 2 ? AT_SYMLINK_NOFOLLOW : 0), &st);
	}
}

static void call_statx(void)
{
	int (*call)(int, const char *, int, unsigned, struct statx *) = fn("statx");
	struct statx stx;
	int rc = call(at, subject, 0, STATX_BASIC_STATS, &stx);

	result("statx", rc);
	if (!rc)
		printf("  mode %o size %llu rdev %u:%u\n", stx.stx_mode,
			(unsigned long long)stx.stx_size, stx.stx_rdev_major, stx.stx_rdev_minor);
}

/* Of a descriptor, however it is asked. */
static void call_fstat(void)
{
	static const char *const plain[] = {"fstat", "fstat64"};
	static const char *const old[] = {"__fxstat", "__fxstat64"};
	int fd = openat(at, subject, O_PATH);
	struct stat st;

	for (size_t i = 0; i < 2; i++) {
		int (*call)(int, struct stat *) = fn(plain[i]);

		print_stat(plain[i], call(fd, &st), &st);
	}
	for (size_t i = 0; i < 2; i++) {
		int (*call)(int, int, struct stat *) = fn(old[i]);

		print_stat(old[i], call(0, fd, &st), &st);
	}
	int (*by_fd)(int, const char *, struct stat *, int) = fn("fstatat");

	print_stat("fstatat", by_fd(fd, "", &st, AT_EMPTY_PATH), &st);
	if (fd >= 0)
		close(fd);
}

static void call_access(void)
{
	static const char *const plain[] = {"access", "eaccess", "euidaccess"};
	static const int modes[] = {F_OK, R_OK, W_OK, X_OK, R_OK | W_OK};

	for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
		for (size_t i = 0; i < 3; i++) {
			int (*call)(const char *, int) = fn(plain[i]);

			result(plain[i], call(subject, modes[m]));
		}
		int (*call)(int, const char *, int, int) = fn("faccessat");

		result("faccessat", call(at, subject, modes[m], 0));
		fn("faccessat");
		result("faccessat eaccess", call(at, subject, modes[m], AT_EACCESS));
	}
}

static void print_fd(const char *name, int fd)
{
	char text[64] = "";
	int saved = errno;
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

	errno = saved;
	result(name, fd < 0 ? -1 : 0);
	printf("  read %zd '%s'\n", n, n > 0 ? text : "");
	if (fd >= 0)
		close(fd);
}

static void call_open(void)
{
	static const char *const plain[] = {"open", "open64"};
	static const char *const by_fd[] = {"openat", "openat64"};
	static const char *const fortified[] = {"__open_2", "__open64_2"};
	static const char *const fortified_by_fd[] = {"__openat_2", "__openat64_2"};
	static const int flags[] = {O_RDONLY, O_RDONLY | O_DIRECTORY, O_PATH | O_NOFOLLOW};

	for (size_t i = 0; i < 6; i++) {
		int (*call)(const char *, int, ...) = fn(plain[i / 3]);

		print_fd(plain[i / 3], call(subject, flags[i % 3]));
	}
	for (size_t i = 0; i < 6; i++) {
		int (*call)(int, const char *, int, ...) = fn(by_fd[i / 3]);

		print_fd(by_fd[i / 3], call(at, subject, flags[i % 3]));
	}
	for (size_t i = 0; i < 2; i++) {
		int (*call)(const char *, int) = fn(fortified[i]);

		print_fd(fortified[i], call(subject, O_RDONLY));
	}
	for (size_t i = 0; i < 2; i++) {
		int (*call)(int, const char *, int) = fn(fortified_by_fd[i]);

		print_fd(fortified_by_fd[i], call(at, subject, O_RDONLY));
	}
}

static void print_file(const char *name, FILE *file)
{
	char text[64] = "";
	int saved = errno;

	if (file && !fgets(text, sizeof text, file))
		strcpy(text, "(none)");
	errno = saved;
	result(name, file ? 0 : -1);
	printf("  '%s'\n", text);
	if (file)
		fclose(file);
}

static void call_fopen(void)
{
	static const char *const plain[] = {"fopen", "fopen64"};
	static const char *const again[] = {"freopen", "freopen64"};

	for (size_t i = 0; i < 2; i++) {
		FILE *(*call)(const char *, const char *) = fn(plain[i]);

		print_file(plain[i], call(subject, "re"));
	}
	for (size_t i = 0; i < 2; i++) {
		FILE *null = fopen("/dev/null", "r");
		FILE *(*call)(const char *, const char *, FILE *) = fn(again[i]);

		print_file(again[i], call(subject, "r", null));
	}
}

static void call_dir(void)
{
	static const char *const scans[] = {"scandir", "scandir64"};
	static const char *const scans_at[] = {"scandirat", "scandirat64"};
	DIR *(*call)(const char *) = fn("opendir");
	DIR *dir = call(subject);
	struct dirent **list;
	int n, saved = errno;

	for (n = 0; dir && readdir(dir); n++)
		;
	if (dir)
		closedir(dir);
	errno = saved;
	result("opendir", n);
	for (size_t i = 0; i < 4; i++) {
		if (i < 2) {
			int (*scan)(const char *, struct dirent ***, void *, void *) = fn(scans[i]);

			n = scan(subject, &list, NULL, (void *)alphasort);
			result(scans[i], n);
		} else {
			int (*scan)(int, const char *, struct dirent ***, void *, void *) =
				fn(scans_at[i - 2]);

			n = scan(at, subject, &list, NULL, (void *)alphasort);
			result(scans_at[i - 2], n);
		}
		for (int k = 0; k < n; k++) {
			printf("  %s\n", list[k]->d_name);
			free(list[k]);
		}
		if (n >= 0)
			free(list);
	}
}

static void print_link(const char *name, ssize_t n, const char *buf)
{
	result(name, n);
	printf("  '%.*s'\n", n > 0 ? (int)n : 0, buf);
}

static void call_readlink(void)
{
	ssize_t (*plain)(const char *, char *, size_t) = fn("readlink");
	ssize_t (*by_fd)(int, const char *, char *, size_t) = fn("readlinkat");
	ssize_t (*checked)(const char *, char *, size_t, size_t) = fn("__readlink_chk");
	ssize_t (*checked_at)(int, const char *, char *, size_t, size_t) = fn("__readlinkat_chk");
	char buf[256];

	print_link("readlink", plain(subject, buf, sizeof buf), buf);
	print_link("readlink short", plain(subject, buf, 3), buf);
	print_link("readlinkat", by_fd(at, subject, buf, sizeof buf), buf);
	print_link("__readlink_chk", checked(subject, buf, 100, sizeof buf), buf);
	print_link("__readlinkat_chk", checked_at(at, subject, buf, 100, sizeof buf), buf);
}

static void print_path(const char *name, char *path, const char *buf)
{
	result(name, path ? 0 : -1);
	if (path)
		puts(path);
	if (path != buf)
		free(path);
}

static void call_realpath(void)
{
	char *(*plain)(const char *, char *) = fn("realpath");
	char *(*checked)(const char *, char *, size_t) = fn("__realpath_chk");
	char *(*gnu)(const char *) = fn("canonicalize_file_name");
	char buf[PATH_MAX];

	print_path("realpath", plain(subject, buf), buf);
	print_path("realpath NULL", plain(subject, NULL), buf);
	print_path("__realpath_chk", checked(subject, buf, sizeof buf), buf);
	print_path("canonicalize_file_name", gnu(subject), buf);
}

static void call_xattr(void)
{
	static const char *const gets[] = {"getxattr", "lgetxattr"};
	static const char *const lists[] = {"listxattr", "llistxattr"};
	char buf[256];

	for (size_t i = 0; i < 2; i++) {
		ssize_t (*get)(const char *, const char *, void *, size_t) = fn(gets[i]);
		ssize_t (*list)(const char *, char *, size_t) = fn(lists[i]);

		result(gets[i], get(subject, "user.weft", buf, sizeof buf));
		fn(lists[i]);
		result(lists[i], list(subject, buf, sizeof buf));
	}
}

int main(int argc, char **argv)
{
	int first = 1;

	if (argc > 2 && !strcmp(argv[1], "-a")) {
		at = open(argv[2], O_RDONLY | O_DIRECTORY);
		if (at < 0) {
			perror(argv[2]);
			return 1;
		}
		first = 3;
	}
	for (int i = first; i < argc; i++) {
		subject = strcmp(argv[i], "NULL") ? argv[i] : NULL;
		printf("== %.80s\n", subject ? subject : "NULL");
		call_stat();
		call_fstat();
		call_statx();
		call_access();
		call_open();
		call_readlink();
		call_xattr();
		call_realpath();
		if (subject) {
			call_fopen();
			call_dir();
		}
	}
	return fflush(stdout) ? 1 : 0;
}
