// SPDX-License-Identifier: BSD-3-Clause
/* weftd's table of nodes: each has a page of its own, wherever the table has to grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/tables/nodes.h"

static void numbers(void **state)
{
	struct nodes t = {0};
	struct node *a, *b;

	(void)state;
	assert_null(nodes_find(&t, 0));
	assert_int_equal(nodes_make(&t, 0, "lab", 17, &a), 0);
	assert_null(nodes_find(&t, 700));
	assert_int_equal(nodes_make(&t, 700, "lab", 18, &b), 0);
	assert_ptr_equal(nodes_find(&t, 0), a);
	assert_ptr_equal(nodes_find(&t, 700), b);
	assert_null(nodes_find(&t, 1));
	assert_null(nodes_find(&t, 699));
	assert_null(nodes_find(&t, UINT32_MAX));
	assert_int_equal(nodes_make(&t, 700, "lab", 19, &b), -EEXIST);
	assert_int_equal(nodes_make(&t, NODES_MAX, "lab", 19, &b), -EINVAL);
	assert_int_equal(a->page->node_guid, 17);
	assert_int_equal(b->page->node_guid, 18);
	assert_int_equal(b->number, 700);
	nodes_end(&t);
	assert_null(nodes_find(&t, 0));
}

/* What a client gets is the page, and nothing that it can write. */
static void pages(void **state)
{
	struct nodes t = {0};
	struct fabric_page *p;
	struct node *n;
	struct stat st;

	(void)state;
	assert_int_equal(nodes_make(&t, 0, "lab", 17, &n), 0);
	assert_int_equal(fstat(n->page_fd, &st), 0);
	p = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, n->page_fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_string_equal(p->fabric, "lab");
	assert_int_equal(p->n_ports, 1);
	assert_int_equal(p->port[0].cap_mask, PORT_CAP_CM);
	assert_ptr_equal(mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, n->page_fd, 0),
		MAP_FAILED);
	nodes_end(&t);
	assert_int_equal(p->node_guid, 17);
	munmap(p, st.st_size);
}

/* A client knows by a page's sequence number that it is not the one of an earlier weftd. */
static void other_pages(void **state)
{
	struct nodes t = {0}, later = {0};
	struct node *a, *b;

	(void)state;
	assert_int_equal(nodes_make(&t, 0, "lab", 17, &a), 0);
	assert_int_equal(nodes_make(&later, 0, "lab", 17, &b), 0);
	assert_int_equal(a->page->seq & 1, 0);
	assert_int_equal(b->page->seq & 1, 0);
	assert_int_not_equal(a->page->seq, b->page->seq);
	nodes_end(&t);
	nodes_end(&later);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(pages),
		cmocka_unit_test(other_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
