/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, each of which stands for a port of a node, or for nothing yet. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct name {
	char *text;
	uint32_t node; /* TOPO_NONE: nothing has this name */
	uint8_t port;
};

struct names {
	struct name *list;
	uint32_t n, *slots; /* hash table of numbers of the list, plus 1; 0: empty */
	uint32_t room;      /* of the list; a power of two, half as many as there are slots */
};

/* The number of that name, which is added if it is new; *n.  0 or -ENOMEM. */
int names_add(struct names *names, const char *text, size_t len, uint32_t *n);

/* Frees all; it is as zeroed. */
void names_free(struct names *names);
