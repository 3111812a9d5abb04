// SPDX-License-Identifier: BSD-3-Clause
#include "umad/attr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NUMBER_TEXT = 32, GUID_WORDS = 4, GID_WORDS = 8, GID_TEXT = 64 };

int attr_text(const char *dir, const char *name, char *out, size_t size)
{
	char path[PATH_MAX], *newline;
	ssize_t n;
	int fd, err;

	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, out, size - 1);
	err = errno;
	close(fd);
	if (n < 0)
		return -err;
	out[n] = '\0';
	newline = strrchr(out, '\n');
	if (newline)
		*newline = '\0';
	return 0;
}

int attr_number(const char *dir, const char *name, unsigned *out)
{
	char text[NUMBER_TEXT];
	int rc = attr_text(dir, name, text, sizeof text);

	if (!rc)
		*out = (unsigned)strtoul(text, NULL, 0);
	return rc;
}

static int read_words(const char *dir, const char *name, __be16 *out, int n)
{
	char text[GID_TEXT], *rest = text;
	int rc = attr_text(dir, name, text, sizeof text);

	for (int i = 0; !rc && i < n; i++) {
		char *word = strsep(&rest, ": \t\n");

		if (!word)
			rc = -EINVAL;
		else
			out[i] = htobe16(strtoul(word, NULL, 16));
	}
	return rc;
}

int attr_guid(const char *dir, const char *name, __be64 *out)
{
	__be16 words[GUID_WORDS];
	int rc = read_words(dir, name, words, GUID_WORDS);

	if (!rc)
		memcpy(out, words, sizeof words);
	return rc;
}

int attr_gid(const char *dir, const char *name, union umad_gid *out)
{
	__be16 words[GID_WORDS];
	int rc = read_words(dir, name, words, GID_WORDS);

	if (!rc)
		memcpy(out, words, sizeof words);
	return rc;
}
