// SPDX-License-Identifier: BSD-3-Clause
#include "shim/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/next.h"
#include "shim/root.h"

static const char *const classes[] = {
	"infiniband", "infiniband_verbs", "infiniband_mad", "infiniband_cm"};

/* If path goes on with component name, what follows it; else NULL. */
static const char *component(const char *path, const char *name)
{
	size_t n = strlen(name);

	while (path[0] == '/' || (path[0] == '.' && (path[1] == '/' || path[1] == '\0')))
		path++;
	if (strncmp(path, name, n) || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	return path + n;
}

/* The names of the SCIF device, new and old. */
static const char *scif_name(const char *below_dev)
{
	const char *mic = component(below_dev, "mic"), *rest = component(below_dev, "scif");

	return rest || !mic ? rest : component(mic, "scif");
}

/* The files of peer clients, and what of the modules of such is looked for. */
static const char *peers(const char *below_sys)
{
	const char *kernel = component(below_sys, "kernel"), *rest;
	const char *mm = kernel ? component(kernel, "mm") : NULL;

	if (mm)
		return component(mm, "memory_peers");
	rest = component(below_sys, "module");
	if (!rest)
		return NULL;
	return component(rest, "nvidia_peermem") ? component(rest, "nvidia_peermem")
						 : component(rest, "nv_peer_mem");
}

/* What follows the part of path that makes it ours, NULL if it is not. */
static const char *below(const char *path, enum path_kind *kind)
{
	const char *dev = component(path, "dev"), *sys = component(path, "sys"), *rest;

	*kind = PATH_OTHER;
	if (dev && (rest = component(dev, "infiniband"))) {
		*kind = PATH_DEV_DIR;
		return rest;
	}
	if (dev && (rest = scif_name(dev))) {
		*kind = PATH_SCIF;
		return rest;
	}
	if (sys && (rest = peers(sys))) {
		*kind = PATH_PEERS;
		return rest;
	}
	sys = sys ? component(sys, "class") : NULL;
	if (!sys)
		return NULL;
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
		rest = component(sys, classes[i]);
		if (rest) {
			*kind = PATH_SYS;
			return rest;
		}
	}
	return NULL;
}

bool path_match(const char *path)
{
	enum path_kind kind;

	return below(path, &kind) != NULL;
}

/* Writes path without ".", ".." and empty components to out, of PATH_MAX bytes. */
static int normalise(const char *path, char *out)
{
	size_t len = 0;

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len && out[--len] != '/')
				;
		} else if (n && !(n == 1 && path[0] == '.')) {
			if (len + 1 + n >= PATH_MAX)
				return -ENAMETOOLONG;
			out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
		}
		path += n;
		path += *path == '/';
	}
	if (!len)
		out[len++] = '/';
	out[len] = '\0';
	return 0;
}

static bool names_directory(const char *path)
{
	size_t n = strlen(path);

	return path[n - 1] == '/' || (n > 1 && path[n - 1] == '.' && path[n - 2] == '/') ||
	       (n > 2 && !strcmp(path + n - 3, "/.."));
}

int path_map_to(const char *root, const char *path, struct path_mapped *out)
{
	int rc = normalise(path, out->virt);
	const char *rest, *real = out->virt, *slash = names_directory(path) ? "/" : "";

	if (rc)
		return rc;
	rest = below(out->virt, &out->kind);
	if (out->kind == PATH_DEV_DIR && *rest)
		out->kind = PATH_DEV_NODE;
	if (out->kind == PATH_OTHER)
		root = "";
	if (out->kind == PATH_SCIF) {
		root = "/dev/null";
		real = rest;
	}
	return snprintf(out->real, PATH_MAX, "%s%s%s", root, real, slash) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

/* ---- ".." ---- */

void path_outside(const char *root, char *real)
{
	size_t n = strlen(root);

	if (n && !strncmp(real, root, n) && (real[n] == '/' || real[n] == '\0'))
		memmove(real, real[n] ? real + n : "/", strlen(real + n) + !real[n] + 1);
}

/* Does it have a ".."? */
static bool climbs(const char *path)
{
	const char *at = path;

	while ((at = strstr(at, ".."))) {
		if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
			return true;
		at += 2;
	}
	return false;
}

/* Goes from directory virt to the one that is above it when links have been followed. */
static int climb(const char *root, char virt[PATH_MAX])
{
	char *(*real_realpath)(const char *, char *) = next(NEXT_REALPATH);
	char up[PATH_MAX + sizeof "/.."];
	struct path_mapped m;
	int rc = path_map_to(root, virt[0] ? virt : "/", &m);

	if (rc)
		return rc;
	snprintf(up, sizeof up, "%s/..", m.real);
	if (!real_realpath(up, virt))
		return -errno;
	path_outside(root, virt);
	if (!strcmp(virt, "/"))
		virt[0] = '\0';
	return 0;
}

/*
 * Writes path without "..", each of which is what the kernel takes it for: the directory above the
 * one that the path before it leads to.
 */
__attribute__((noinline, cold)) static int straighten(
	const char *root, const char *path, char out[PATH_MAX])
{
	const char *end = names_directory(path) ? "/" : "";
	size_t len = 0, n;
	int rc;

	out[0] = '\0';
	for (; *path; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (!n || (n == 1 && path[0] == '.'))
			continue;
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			rc = climb(root, out);
			if (rc)
				return rc;
			len = strlen(out);
			continue;
		}
		if (len + 1 + n + 1 >= PATH_MAX)
			return -ENAMETOOLONG;
		out[len++] = '/';
		memcpy(out + len, path, n);
		len += n;
		out[len] = '\0';
	}
	if (len + sizeof "/" > PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(out + len, len ? end : "/");
	return 0;
}

/* ---- where a path lies ---- */

static bool has_counters(const struct path_mapped *m)
{
	return m->kind == PATH_PEERS || (m->kind == PATH_SYS && strstr(m->virt, "counters/"));
}

int path_map(const char *path, struct path_mapped *out)
{
	char root[PATH_MAX], straight[PATH_MAX];
	int saved = errno, rc = 0;

	if (climbs(path)) {
		tree_root(root);
		rc = straighten(root, path, straight);
		path = straight;
	}
	if (!rc)
		rc = path_map_to("", path, out);
	if (!rc && out->kind != PATH_OTHER && out->kind != PATH_SCIF) {
		tree_root(root);
		if (has_counters(out)) /* they are written when somebody looks */
			tree_refresh();
		rc = path_map_to(root, path, out);
	}
	errno = saved;
	return rc;
}

/* The directory that dirfd names, with a slash behind it; its length, or -1. */
static ssize_t directory(int dirfd, char *out)
{
	ssize_t (*real_readlink)(const char *, char *, size_t) = next(NEXT_READLINK);
	char link[64] = "/proc/self/cwd";
	ssize_t n;

	if (dirfd != AT_FDCWD)
		snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
	n = real_readlink(link, out, PATH_MAX - 1);
	if (n <= 0 || n >= PATH_MAX - 1 || out[0] != '/')
		return -1;
	out[n++] = '/';
	return n;
}

bool path_from(int dirfd, const char *path, char abs[PATH_MAX])
{
	int saved = errno;
	ssize_t n = directory(dirfd, abs);

	errno = saved;
	if (n < 0 || n + strlen(path) >= PATH_MAX)
		return false;
	strcpy(abs + n, path);
	return path_match(abs);
}
