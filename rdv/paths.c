// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

bool rdv_fabric_name_ok(const char *name)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.-";
	size_t n = strlen(name);

	return n >= 1 && n <= FABRIC_NAME_MAX && name[0] != '.' && strspn(name, legal) == n &&
	       strncmp(name, "default-", 8) != 0;
}

int rdv_node_number(const char *s)
{
	int n = 0;

	if (!s || !*s || strcmp(s, "weft0") == 0)
		return 0;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		n = n * 10 + (*s - '0');
		if (n > UINT16_MAX)
			return -EINVAL;
	}
	return n;
}

const char *rdv_fabric_name(void)
{
	const char *name = secure_getenv("WEFT_FABRIC");

	return name && *name ? name : "default";
}

/* $XDG_RUNTIME_DIR, unless it is another user's, as after su or sudo. */
static const char *xdg_dir(void)
{
	const char *dir = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (!dir || dir[0] != '/' || stat(dir, &st) < 0 || st.st_uid != geteuid())
		return NULL;
	return dir;
}

/*
 * Our user as those outside our user namespace know it: root of unshare -r is not to take the
 * directory of the machine's root.
 */
static unsigned uid_outside(void)
{
	unsigned uid = geteuid(), inside, outside, n, found = uid;
	int saved = errno;
	FILE *f = fopen("/proc/self/uid_map", "re");

	while (f && fscanf(f, "%u %u %u", &inside, &outside, &n) == 3)
		if (uid >= inside && uid - inside < n)
			found = outside + (uid - inside);
	if (f)
		fclose(f);
	errno = saved;
	return found;
}

int rdv_dir_path(char *buf, size_t size)
{
	const char *own = secure_getenv("WEFT_RUNTIME_DIR");
	const char *xdg = xdg_dir();
	int n;

	if (own && *own && own[0] != '/')
		return -EINVAL; /* two processes would mean different directories */
	if (own && *own)
		n = snprintf(buf, size, "%s", own);
	else if (xdg)
		n = snprintf(buf, size, "%s/weft", xdg);
	else
		n = snprintf(buf, size, "/tmp/weft-%u", uid_outside());
	return (size_t)n < size ? 0 : -ENAMETOOLONG;
}

uint64_t rdv_namespace(const char *which)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "/proc/self/ns/%s", which);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Not to remove it, nor to change its mode: it may be /tmp, or another thing of the user's. */
static const char own_dir[] = "set WEFT_RUNTIME_DIR to a directory of your own, of mode 700";

static int refuse(const char *dir, const char *why)
{
	log_line(LOG_LVL_ERROR, "runtime directory %s %s; %s", dir, why, own_dir);
	return -EACCES;
}

static int check_dir(const char *dir, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return refuse(dir, "belongs to another user");
	if (st.st_mode & 077)
		return refuse(dir, "is open to other users");
	return 0;
}

static bool is_link(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISLNK(st.st_mode);
}

/* Opens directory dir of ours; returns an fd or -errno, logged. */
static int open_dir(const char *dir)
{
	int fd, ret;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
		ret = -errno;
		log_line(LOG_LVL_ERROR, "cannot create runtime directory %s: %s; %s", dir,
			strerror(-ret), own_dir);
		return ret;
	}
	fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		if (ret == -ENOTDIR || ret == -ELOOP)
			return refuse(
				dir, is_link(dir) ? "is a symbolic link" : "is not a directory");
		log_line(
			LOG_LVL_ERROR, "cannot open runtime directory %s: %s", dir, strerror(-ret));
		return ret;
	}
	ret = check_dir(dir, fd);
	if (ret) {
		close(fd);
		return ret;
	}
	return fd;
}

int rdv_paths_open(struct rdv_paths *p, const char *fabric)
{
	int ret;

	p->dir_fd = -1;
	if (!fabric)
		fabric = rdv_fabric_name();
	if (!rdv_fabric_name_ok(fabric)) {
		log_line(LOG_LVL_ERROR,
			"bad fabric name \"%.40s\"; use 1 to %d letters, digits, '_', '.', '-'",
			fabric, FABRIC_NAME_MAX);
		return -EINVAL;
	}
	strcpy(p->fabric, fabric);
	if (strcmp(fabric, "default") == 0)
		snprintf(p->name, sizeof p->name, "default-%" PRIu64, rdv_namespace("net"));
	else
		strcpy(p->name, fabric);
	ret = rdv_dir_path(p->dir, sizeof p->dir);
	if (ret == -EINVAL)
		log_line(LOG_LVL_ERROR,
			"WEFT_RUNTIME_DIR=%s is relative; set it to a path that begins with /",
			secure_getenv("WEFT_RUNTIME_DIR"));
	else if (ret)
		log_line(LOG_LVL_ERROR, "the path of the runtime directory is too long; set "
					"WEFT_RUNTIME_DIR to a shorter one");
	if (ret)
		return ret;
	ret = open_dir(p->dir);
	if (ret < 0)
		return ret;
	p->dir_fd = ret;
	return 0;
}

void rdv_paths_close(struct rdv_paths *p)
{
	if (p->dir_fd >= 0)
		close(p->dir_fd);
	p->dir_fd = -1;
}

bool rdv_plain_addr(const char *dir, const char *name, struct sockaddr_un *addr)
{
	int n = snprintf(addr->sun_path, sizeof addr->sun_path, "%s/%s", dir, name);

	addr->sun_family = AF_UNIX;
	return n < (int)sizeof addr->sun_path;
}

socklen_t rdv_sock_addr(const struct rdv_paths *p, struct sockaddr_un *addr)
{
	char name[sizeof p->name + 8], dir[32];

	snprintf(name, sizeof name, "%s.sock", p->name);
	snprintf(dir, sizeof dir, "/proc/self/fd/%d", p->dir_fd);
	if (!rdv_plain_addr(p->dir, name, addr))
		(void)rdv_plain_addr(dir, name, addr);
	return sizeof *addr;
}

struct rdv_file_name rdv_file_name(const struct rdv_paths *p, const char *suffix)
{
	struct rdv_file_name n;

	snprintf(n.s, sizeof n.s, "%s.%s", p->name, suffix);
	return n;
}

bool rdv_has_file(const struct rdv_paths *p, const char *suffix)
{
	/* Past the path shim, which asks for such names itself. */
	return !syscall(SYS_faccessat, p->dir_fd, rdv_file_name(p, suffix).s, F_OK);
}

void rdv_tree_name(const struct rdv_paths *p, char name[RDV_TREE_NAME])
{
	int node = rdv_node_number(secure_getenv("WEFT_NODE"));

	if (node < 0)
		snprintf(name, RDV_TREE_NAME, "%s.tree.none", p->name);
	else if (node && rdv_has_file(p, "topo"))
		snprintf(name, RDV_TREE_NAME, "%s.tree.%d", p->name, node);
	else
		snprintf(name, RDV_TREE_NAME, "%s.tree", p->name);
}

int rdv_open_file(const struct rdv_paths *p, const char *suffix)
{
	char name[sizeof p->name + 16];
	int fd;

	snprintf(name, sizeof name, "%s.%s", p->name, suffix);
	fd = openat(p->dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int rdv_open_to_read(const struct rdv_paths *p, const char *suffix)
{
	/* A FIFO would be waited for. */
	int fd = openat(p->dir_fd, rdv_file_name(p, suffix).s,
		O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int ret;

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? fd : -EINVAL;
	if (ret < 0)
		close(fd);
	return ret;
}

int rdv_open_anew(const struct rdv_paths *p, const char *suffix)
{
	const struct rdv_file_name name = rdv_file_name(p, suffix);
	int fd;

	unlinkat(p->dir_fd, name.s, 0);
	fd = openat(p->dir_fd, name.s, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}
