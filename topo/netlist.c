// SPDX-License-Identifier: BSD-3-Clause
#include "topo/netlist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/check.h"
#include "topo/reader.h"
#include "topo/wire.h"

static int check(struct reader *r)
{
	struct topo_fault fault;
	int rc = wire_all(r);

	if (!rc && !r->build.topo.n_nodes)
		return reader_fail_at(r, (struct place){0},
			"%.300s: no node in it; is it a netlist?", r->files[0]);
	rc = rc ? rc : topo_check(&r->build.topo, &fault);
	if (rc == -EINVAL && !*r->error)
		reader_fail_at(r, r->nodes[fault.node], "%s", fault.reason);
	return rc;
}

static bool is_alias(const struct name *name)
{
	return name->node != TOPO_NONE && strchr(name->text, '@');
}

/* Moves the aliases' names to the topology. */
static int keep_aliases(struct reader *r)
{
	struct topo *t = &r->build.topo;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->names.n; i++)
		n += is_alias(&r->names.list[i]);
	t->aliases = calloc(n + 1, sizeof *t->aliases);
	if (!t->aliases)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->names.n; i++) {
		struct name *name = &r->names.list[i];

		if (!is_alias(name))
			continue;
		t->aliases[t->n_aliases++] =
			(struct topo_alias){name->text, name->node, name->port};
		name->text = NULL;
	}
	return 0;
}

static void free_list(char **list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

/* Ends the reading, which has come to rc. */
static int finish(struct reader *r, struct netlist *out, int rc)
{
	rc = rc ? rc : check(r);
	rc = rc ? rc : keep_aliases(r);
	rc = rc ? rc : topo_build_end(&r->build, &out->topo);
	if (!rc) {
		out->commands = r->commands;
		out->n_commands = r->n_commands;
	} else {
		free_list(r->commands, r->n_commands);
	}
	if (rc && !*r->error)
		snprintf(r->error, TOPO_ERROR, "%s", strerror(-rc));
	topo_build_drop(&r->build);
	names_free(&r->names);
	free_list(r->files, r->n_files);
	free(r->nodes);
	free(r->links);
	return rc;
}

static int begin(struct reader *r, struct netlist *out, const char *name, char error[TOPO_ERROR])
{
	*out = (struct netlist){0};
	*error = '\0';
	*r = (struct reader){.error = error};
	topo_build_begin(&r->build);
	return reader_keep(&r->files, &r->n_files, strdup(name));
}

int netlist_load(struct netlist *out, const char *path, char error[TOPO_ERROR])
{
	bool standard = !strcmp(path, "-");
	struct reader r;
	int rc = begin(&r, out, standard ? "stdin" : path, error), fd;

	if (rc)
		return finish(&r, out, rc);
	fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		rc = -errno;
		snprintf(error, TOPO_ERROR, "cannot open '%.300s': %s", path, strerror(-rc));
		return finish(&r, out, rc);
	}
	rc = reader_file(&r, fd);
	if (!standard)
		close(fd);
	return finish(&r, out, rc);
}

int netlist_parse(
	struct netlist *out, const char *name, const char *text, size_t len, char error[TOPO_ERROR])
{
	struct reader r;
	int rc = begin(&r, out, name, error);

	r.depth = 1;
	return finish(&r, out, rc ? rc : reader_lines(&r, text, len));
}

void netlist_free(struct netlist *n)
{
	topo_free(&n->topo);
	free_list(n->commands, n->n_commands);
	*n = (struct netlist){0};
}
