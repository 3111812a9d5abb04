// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/share_status.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/check.h"

static json_t *read_status(void)
{
	const char *weftd = getenv("WEFT_DAEMON");
	char command[4200];
	json_error_t error;
	json_t *root;
	FILE *f;

	if (!weftd || strlen(weftd) < 2)
		die("WEFT_DAEMON is not set");
	/* weft lies beside weftd. */
	snprintf(command, sizeof command, "%.*s status --json", (int)strlen(weftd) - 1, weftd);
	f = popen(command, "re");
	root = f ? json_loadf(f, 0, &error) : NULL;
	if (!root || pclose(f))
		die("weft status");
	return root;
}

int64_t status_of(pid_t pid, const char *group, const char *name)
{
	json_t *root = read_status(), *p;
	int64_t value = -1;
	size_t i;

	json_array_foreach(json_object_get(root, "processes"), i, p)
	{
		json_t *v = json_object_get(json_object_get(p, group), name);

		if (json_integer_value(json_object_get(p, "pid")) == pid && v)
			value = json_integer_value(v);
	}
	json_decref(root);
	return value;
}

int64_t status_of_ended(pid_t pid, const char *group, const char *name)
{
	json_t *root = read_status(), *p;
	int64_t value = -1;
	size_t i;

	json_array_foreach(json_object_get(root, "ended"), i, p)
	{
		if (json_integer_value(json_object_get(p, "pid")) == pid)
			value = group ? json_integer_value(
						json_object_get(json_object_get(p, group), name))
				      : 0;
	}
	json_decref(root);
	return value;
}

int64_t status_ended_rows(void)
{
	json_t *root = read_status();
	int64_t n = json_array_size(json_object_get(root, "ended"));

	json_decref(root);
	return n;
}

int64_t peer_counter(const char *client, const char *counter)
{
	json_t *root = read_status(), *peer;
	int64_t value = -1;
	size_t i;

	json_array_foreach(json_object_get(root, "peers"), i, peer)
	{
		const char *name = json_string_value(json_object_get(peer, "name"));

		if (name && !strcmp(name, client))
			value = json_integer_value(json_object_get(peer, counter));
	}
	json_decref(root);
	return value;
}

int64_t status_of_all(const char *group, const char *name)
{
	json_t *root = read_status();
	int64_t value = -1;
	const json_t *v = json_object_get(json_object_get(root, group), name);

	if (v)
		value = json_integer_value(v);
	json_decref(root);
	return value;
}

int64_t share_count(const char *name)
{
	return status_of(getpid(), "share", name);
}

bool can_hold_off(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

unsigned areas(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned n = 0;

	for (int c; f && (c = getc(f)) != EOF;)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}
