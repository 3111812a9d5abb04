// SPDX-License-Identifier: BSD-3-Clause
// Lists of devices by name, of any number and length.
#include "umad/umad.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "umad/ca.h"
#include "umad/root.h"

static struct umad_device_node *make_node(const char *name)
{
	size_t size = strlen(name) + 1;
	struct umad_device_node *node = malloc(sizeof *node + size);

	if (!node)
		return NULL;
	node->next = NULL;
	node->ca_name = memcpy(node + 1, name, size);
	return node;
}

/* In the order of the directory.  0 or ENOMEM. */
static int read_nodes(DIR *dir, struct umad_device_node **tail)
{
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		if (!ca_is_node(entry->d_name))
			continue;
		*tail = make_node(entry->d_name);
		if (!*tail)
			return ENOMEM;
		tail = &(*tail)->next;
	}
	return 0;
}

/* NULL with errno 0 says that there is none. */
struct umad_device_node *umad_get_ca_device_list(void)
{
	struct umad_device_node *head = NULL;
	char path[PATH_MAX];
	DIR *dir;
	int err = -root_path(path, "infiniband");

	dir = err ? NULL : opendir(path);
	if (!dir) {
		if (!err)
			err = errno;
		errno = err == ENOENT ? 0 : err;
		return NULL;
	}
	err = read_nodes(dir, &head);
	closedir(dir);
	if (err) {
		umad_free_ca_device_list(head);
		head = NULL;
	}
	errno = err;
	return head;
}

void umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head) {
		struct umad_device_node *next = head->next;

		free(head);
		head = next;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct umad_device_node *const *x = a, *const *y = b;

	return strcmp((*x)->ca_name, (*y)->ca_name);
}

static size_t count_nodes(const struct umad_device_node *node)
{
	size_t n = 0;

	for (; node; node = node->next)
		n++;
	return n;
}

/* size is the length of the list, or 0: count.  Returns 0, ENOMEM, or EINVAL: another length. */
int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	size_t n = count_nodes(*head), i = 0;
	struct umad_device_node **nodes;

	if (!size)
		size = n;
	if (size < 2)
		return 0;
	if (size != n)
		return EINVAL;
	nodes = calloc(n, sizeof(*nodes));
	if (!nodes)
		return ENOMEM;
	for (struct umad_device_node *node = *head; node; node = node->next)
		nodes[i++] = node;
	qsort(nodes, n, sizeof(*nodes), by_name);
	for (i = 0; i < n; i++)
		nodes[i]->next = i + 1 < n ? nodes[i + 1] : NULL;
	*head = nodes[0];
	free(nodes);
	return 0;
}
