// SPDX-License-Identifier: BSD-3-Clause
#include "topo/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/directive.h"

enum { BYTES_MAX = 64 << 20, FIRST_READ = 1 << 16 };

static void note(struct reader *r, struct place at, const char *fmt, va_list ap)
{
	int n = 0;

	if (at.line)
		n = snprintf(r->error, TOPO_ERROR, "%.300s:%u: ", r->files[at.file], at.line);
	vsnprintf(r->error + n, TOPO_ERROR - n, fmt, ap);
}

int reader_fail(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(r, r->at, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int reader_fail_at(struct reader *r, struct place at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(r, at, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int reader_check_mask(struct reader *r, const char *what, uint64_t v, unsigned greatest)
{
	const uint64_t strange = v & ~(uint64_t)greatest;

	if (!strange)
		return 0;
	return reader_fail(
		r, "'%s' has no bit of %llu", what, (unsigned long long)(strange & -strange));
}

int reader_name(struct reader *r, struct slice text, uint32_t *name)
{
	bool whole = memchr(text.p, '#', text.len) ||
		     (memchr(text.p, '@', text.len) && *text.p != '@') || !*r->module;
	char full[2 * TOPO_TEXT_MAX + 2];
	int n;

	if (!text.len || !slice_is_plain(text))
		return reader_fail(r, "a name has 1 to %d printable bytes", TOPO_TEXT_MAX);
	n = snprintf(full, sizeof full, "%s%s%.*s", whole ? "" : r->module,
		whole || *text.p == '@' ? "" : "#", (int)text.len, text.p);
	if (n > TOPO_TEXT_MAX)
		return reader_fail(r, "'%s' is longer than %d bytes", full, TOPO_TEXT_MAX);
	return names_add(&r->names, full, n, name);
}

int reader_keep(char ***list, uint32_t *n, char *text)
{
	bool full = !(*n & (*n - 1)); /* it has room for the next power of two */
	char **more = !text  ? NULL
		      : full ? reallocarray(*list, *n ? 2 * (size_t)*n : 1, sizeof *more)
			     : *list;

	if (!more) {
		free(text);
		return -ENOMEM;
	}
	*list = more;
	more[(*n)++] = text;
	return 0;
}

int reader_lines(struct reader *r, const char *text, size_t len)
{
	static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, as editors set it in front */
	const char *end = text + len;
	int rc = 0;

	r->record = TOPO_NONE;
	if (len >= sizeof mark - 1 && !memcmp(text, mark, sizeof mark - 1))
		text += sizeof mark - 1;
	while (!rc && text < end) {
		const char *eol = memchr(text, '\n', end - text);
		struct lex line = {text, eol ? eol : end};

		r->at.line++;
		text = eol ? eol + 1 : end;
		if (line.end > line.p && line.end[-1] == '\r')
			line.end--;
		rc = memchr(line.p, '\0', line.end - line.p)
			     ? reader_fail(r, "a NUL byte: this is no netlist")
			     : directive_line(r, line);
	}
	return rc;
}

/* Reads all of fd, of what is left of BYTES_MAX; the caller frees *text. */
static int read_all(struct reader *r, int fd, char **text, size_t *len)
{
	size_t room = 0;
	ssize_t n = 1;

	for (*text = NULL, *len = 0; n > 0; *len += n > 0 ? n : 0) {
		if (*len == room) {
			char *more = realloc(*text, room = room ? 2 * room : FIRST_READ);

			if (!more)
				return -ENOMEM;
			*text = more;
		}
		do
			n = read(fd, *text + *len, room - *len);
		while (n < 0 && errno == EINTR);
		if (r->bytes + *len > BYTES_MAX)
			return -EFBIG;
	}
	r->bytes += *len;
	return n < 0 ? -errno : 0;
}

/* Makes the file the present one, unless it is read already; 0, -ELOOP or -errno. */
static int enter(struct reader *r, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (r->depth && !S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	for (unsigned d = 0; d < r->depth; d++)
		if (r->stack[d][0] == st.st_dev && r->stack[d][1] == st.st_ino)
			return -ELOOP;
	r->stack[r->depth][0] = st.st_dev;
	r->stack[r->depth][1] = st.st_ino;
	return 0;
}

int reader_file(struct reader *r, int fd)
{
	const struct place was = r->at;
	char *text = NULL;
	size_t len;
	int rc = enter(r, fd);

	rc = rc ? rc : read_all(r, fd, &text, &len);
	if (!rc) {
		r->depth++;
		r->at = (struct place){.file = r->n_files - 1};
		rc = reader_lines(r, text, len);
		r->depth--;
	} else if (rc != -ENOMEM) {
		reader_fail(r, "cannot read '%.300s': %s", r->files[r->n_files - 1],
			rc == -ELOOP ? "it includes itself" : strerror(-rc));
	}
	free(text);
	if (!rc) {
		r->at = was;
		r->record = TOPO_NONE;
	}
	return rc;
}

static char *beside(const char *file, struct slice path)
{
	const char *slash = *path.p == '/' ? NULL : strrchr(file, '/');
	char *full;

	return asprintf(&full, "%.*s%.*s", slash ? (int)(slash + 1 - file) : 0, file, (int)path.len,
		       path.p) < 0
		       ? NULL
		       : full;
}

int reader_include(struct reader *r, struct slice path)
{
	char *full;
	int fd, rc;

	if (r->depth == READER_DEPTH_MAX)
		return reader_fail(r, "more than %d files include each other", READER_DEPTH_MAX);
	full = beside(r->files[r->at.file], path);
	rc = reader_keep(&r->files, &r->n_files, full);
	if (rc)
		return rc;
	fd = open(full, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO would block */
	if (fd < 0)
		return reader_fail(r, "cannot open '%.300s': %s", full, strerror(errno));
	rc = reader_file(r, fd);
	close(fd);
	return rc;
}
