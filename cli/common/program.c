// SPDX-License-Identifier: BSD-3-Clause
#include "cli/common/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/common/elf.h"
#include "cli/common/sanitizer.h"
#include "cli/common/wrapper.h"

/* Scripts and wrappers behind each other: the kernel takes five scripts. */
enum { DEPTH_MAX = 8, SHEBANG_MAX = 256 };

static const char *const libraries[] = {"libibverbs.so.1", "librdmacm.so.1", "libibumad.so.3",
	"librpma.so.0", "libscif.so.0", "libweftti.so.0"};

/* A program that is looked at. */
struct looking {
	const char *lib;
	struct program_verdict *v;
	char script[PROGRAM_WHY / 4]; /* that leads to it; "": none */
	int depth;
};

static void look(struct looking *l, char **cmd);

/* "'path' fmt...", or with a script "'script' is run by 'path', which fmt...". */
static void say(struct looking *l, const char *path, const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void say(struct looking *l, const char *path, const char *remedy, const char *fmt, ...)
{
	char text[PROGRAM_WHY / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (*l->script)
		snprintf(l->v->why, sizeof l->v->why, "'%s' is run by '%.200s', which %s",
			l->script, path, text);
	else
		snprintf(l->v->why, sizeof l->v->why, "'%.200s' %s", path, text);
	snprintf(l->v->remedy, sizeof l->v->remedy, "%s", remedy);
}

/* ---- privileges of the file ---- */

/* By which the dynamic linker heeds no variable; NULL: by none. */
static const char *privilege_of(int fd, const struct stat *st)
{
	struct statvfs fs;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
		(!fstatvfs(fd, &fs) && fs.f_flag & ST_NOSUID))
		return NULL;
	if (st->st_mode & S_ISUID && st->st_uid != getuid())
		return "set-user-ID";
	if (st->st_mode & S_ISGID && st->st_mode & S_IXGRP && st->st_gid != getgid())
		return "set-group-ID";
	if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return "capabilities";
	return NULL;
}

/* ---- another machine ---- */

static const char *machine_name(const struct elf_facts *f)
{
	static const struct {
		uint16_t machine;
		uint8_t bits;
		const char *name;
	} names[] = {
		{EM_X86_64, 64, "x86-64"},
		{EM_X86_64, 32, "x32"},
		{EM_386, 32, "i386, 32 bits"},
		{EM_AARCH64, 64, "arm64"},
		{EM_ARM, 32, "arm, 32 bits"},
		{EM_RISCV, 64, "riscv64"},
		{EM_PPC64, 64, "ppc64"},
		{EM_S390, 64, "s390x"},
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].machine == f->machine && names[i].bits == f->bits)
			return names[i].name;
	return f->bits == 64 ? "another machine" : "another machine, 32 bits";
}

/* What this program is itself, as Weft's libraries are. */
static bool own_facts(struct elf_facts *f)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : elf_read(fd, f);

	if (fd >= 0)
		close(fd);
	return !rc && !f->foreign && *f->interp;
}

/* True: it is said what is wrong. */
static bool other_machine(struct looking *l, const char *path, const struct elf_facts *f)
{
	struct elf_facts own;

	if (!own_facts(&own))
		return false;
	if (f->foreign || f->machine != own.machine || f->bits != own.bits) {
		say(l, path, "compile it for this machine",
			"is a program for %s, and Weft's libraries are for %s", machine_name(f),
			machine_name(&own));
		return true;
	}
	if (!*f->interp || !strcmp(basename(f->interp), basename(own.interp)))
		return false;
	say(l, path, "compile it for the C library of this machine",
		"asks for another dynamic linker (%.100s) than Weft's libraries (%.100s)",
		f->interp, own.interp);
	return true;
}

/* ---- another rdma-core ---- */

static bool is_ours(const char *lib, const char *name, const struct stat *found)
{
	char path[2 * PATH_MAX];
	struct stat ours;

	snprintf(path, sizeof path, "%s/%s", lib, name);
	return !stat(path, &ours) && ours.st_dev == found->st_dev && ours.st_ino == found->st_ino;
}

/* One of the libraries that Weft has lies in dir, and is not Weft's: its name, else NULL. */
static const char *other_library(const char *lib, const char *dir)
{
	char path[2 * PATH_MAX + 32];
	struct stat st;

	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, libraries[i]);
		if (!stat(path, &st) && !is_ours(lib, libraries[i], &st))
			return libraries[i];
	}
	return NULL;
}

/* The folder of a program, for $ORIGIN. */
static void origin_of(const char *path, char dir[PATH_MAX])
{
	if (realpath(path, dir))
		*strrchr(dir, '/') = '\0';
	else
		strcpy(dir, ".");
}

/* One folder of an RPATH, of n bytes, with $ORIGIN in front replaced. */
static void expand(const char *item, size_t n, const char *path, char dir[2 * PATH_MAX])
{
	char origin[PATH_MAX];
	size_t skip = n >= 7 && !strncmp(item, "$ORIGIN", 7)     ? 7
		      : n >= 9 && !strncmp(item, "${ORIGIN}", 9) ? 9
								 : 0;

	*origin = '\0';
	if (skip)
		origin_of(path, origin);
	snprintf(dir, 2 * PATH_MAX, "%s%.*s", origin, (int)(n - skip), item + skip);
}

static bool rpath_has_other(struct looking *l, const char *path, const struct elf_facts *f)
{
	char dir[2 * PATH_MAX];
	const char *name;

	for (const char *at = f->rpath; *at; at += *at == ':') {
		const size_t n = strcspn(at, ":");

		expand(at, n, path, dir);
		at += n;
		name = n ? other_library(l->lib, dir) : NULL;
		if (!name)
			continue;
		say(l, path, "take the RPATH out: patchelf --remove-rpath, or link without -rpath",
			"has an RPATH, which comes before Weft's libraries and leads to another %s "
			"(%.200s)",
			name, dir);
		return true;
	}
	return false;
}

/* A library that it needs by its path. */
static bool needs_other(struct looking *l, const char *path, const struct elf_facts *f)
{
	for (const char *name = f->needed; *name; name += strlen(name) + 1) {
		struct stat st;

		for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
			if (!strchr(name, '/') || strcmp(basename(name), libraries[i]) != 0 ||
				stat(name, &st) || is_ours(l->lib, libraries[i], &st))
				continue;
			say(l, path, "link it by name, such as -libverbs",
				"needs the library %.200s by its path, whatever Weft has", name);
			return true;
		}
	}
	return false;
}

/* ---- a file ---- */

static void look_at_program(
	struct looking *l, const char *path, int fd, const struct stat *st, struct elf_facts *f)
{
	const char *privilege = privilege_of(fd, st);

	if (other_machine(l, path, f))
		return;
	if (!*f->interp && f->has_soname)
		return; /* a dynamic linker: nothing is known of what it runs */
	if (!*f->interp)
		say(l, path, "link it dynamically, with -libverbs",
			"is linked statically, so that it loads no library of Weft's");
	else if (privilege)
		say(l, path, "run a copy of it, which has none (cp)",
			"has privileges of its file (%s), with which it loads no library of Weft's",
			privilege);
	else if (!rpath_has_other(l, path, f))
		needs_other(l, path, f);
	sanitizer_needed(f->needed, l->v->runtime, sizeof l->v->runtime);
}

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* What a script that may be run names as its interpreter, and the kernel cannot run. */
static void say_lost(struct looking *l, const char *interpreter)
{
	const size_t n = strlen(interpreter);
	const bool returns = interpreter[n - 1] == '\r';
	const int err = access(interpreter, F_OK) ? errno : EACCES;

	say(l, interpreter,
		returns ? "take the carriage returns out of the script (sed -i 's/\\r$//')"
			: "correct the first line of the script, or install what it names",
		"cannot be run: %s", strerror(err));
	l->v->lost = true;
}

/* "#!INTERPRETER [ARGUMENT]" in line, as the kernel reads it; whole: all of it is there. */
static void look_at_script(struct looking *l, char *path, char *line, bool whole)
{
	char *cmd[4] = {0}, *end;
	int n = 0;

	line[strcspn(line, "\n")] = '\0';
	cmd[n++] = line + 2 + strspn(line + 2, " \t");
	end = cmd[0] + strcspn(cmd[0], " \t");
	if (*end) {
		*end++ = '\0';
		end += strspn(end, " \t");
		if (*end)
			cmd[n++] = end;
	}
	cmd[n] = path;
	if (!*cmd[0])
		return;
	if (!*l->script)
		snprintf(l->script, sizeof l->script, "%.200s", path);
	if (is_program(cmd[0]))
		look(l, cmd);
	else if (whole && is_program(path))
		say_lost(l, cmd[0]);
}

static void look_at_file(struct looking *l, char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char line[SHEBANG_MAX];
	struct elf_facts facts;
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		n = pread(fd, line, sizeof line - 1, 0);
		line[n > 0 ? n : 0] = '\0';
		if (!strncmp(line, "#!", 2))
			look_at_script(l, path, line, n < SHEBANG_MAX - 1 || strchr(line, '\n'));
		else if (!elf_read(fd, &facts))
			look_at_program(l, path, fd, &st, &facts);
	}
	close(fd);
}

/* ---- a command ---- */

/* The file that execvp(3) takes. */
static bool find_file(const char *name, char path[PATH_MAX])
{
	const char *at = secure_getenv("PATH");

	snprintf(path, PATH_MAX, "%s", name);
	if (strchr(name, '/'))
		return true;
	for (at = at ? at : "/bin:/usr/bin"; at; at = strchr(at, ':')) {
		at += *at == ':';
		snprintf(path, PATH_MAX, "%.*s%s%s", (int)strcspn(at, ":"), at,
			*at && *at != ':' ? "/" : "./", name);
		if (is_program(path))
			return true;
	}
	return false;
}

static void look(struct looking *l, char **cmd)
{
	char path[PATH_MAX];
	struct wrapper w;

	if (l->depth++ == DEPTH_MAX)
		return;
	wrapper_look(cmd, &w);
	if (w.name && find_file(cmd[0], path)) {
		say(l, cmd[0], "",
			"starts its program without the environment that leads it to Weft");
		snprintf(l->v->remedy, sizeof l->v->remedy,
			"put weft behind it: %s ... weft run PROGRAM", w.name);
	} else if (w.inner) {
		look(l, w.inner);
	} else if (find_file(cmd[0], path)) {
		look_at_file(l, path);
	}
}

void program_look(char **cmd, const char *lib, struct program_verdict *v)
{
	struct looking l = {.lib = lib, .v = v};

	memset(v, 0, sizeof *v);
	if (!find_file(cmd[0], v->path))
		*v->path = '\0';
	look(&l, cmd);
}
