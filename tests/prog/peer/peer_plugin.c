// SPDX-License-Identifier: BSD-3-Clause
/*
 * peer_plugin FIRST SECOND FAILS: WEFT_PEER_CLIENTS loads libraries at the first ibv_open_device,
 * in their order; what is missing, no library, no client, or fails, is named in the log.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/peer_device.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

/* Of the six files: one that is not there, no library, one that fails, one without a client. */
enum { REFUSED = 4 };

static char log_file[256];

/* What the library of that path knows of its device; NULL: it is not loaded. */
static struct peer_device *device_of(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);

	return library ? dlsym(library, "peer_device") : NULL;
}

static void set_environment(char **path)
{
	const char *dir = getenv("WEFT_RUNTIME_DIR");
	char text[4096];

	snprintf(log_file, sizeof log_file, "%s/peer_plugin.log", dir ? dir : "/tmp");
	snprintf(text, sizeof text, "info:%s", log_file);
	setenv("WEFT_LOG", text, 1);
	snprintf(text, sizeof text, "/nowhere/a.so:%s:/etc/passwd::%s:libm.so.6:%s", path[1],
		path[3], path[2]);
	setenv("WEFT_PEER_CLIENTS", text, 1);
}

static void check_log(char **path)
{
	char text[4096];

	CHECK_EQ(lines_with(log_file, "WEFT_PEER_CLIENTS: loading /nowhere/a.so"), 1);
	CHECK_EQ(lines_with(log_file, "WEFT_PEER_CLIENTS: /nowhere/a.so: cannot open"), 1);
	CHECK_EQ(lines_with(log_file, "WEFT_PEER_CLIENTS: /etc/passwd: "), 1);
	CHECK_EQ(lines_with(log_file, "WEFT_PEER_CLIENTS: libm.so.6 registers no peer client"), 1);
	snprintf(text, sizeof text, "init_module of %s answered -5", path[3]);
	CHECK_EQ(lines_with(log_file, text), 1);
	CHECK_EQ(status_of(getpid(), "counters", "peer_refused"), REFUSED);
}

static void use(char **path)
{
	struct peer_device *second = device_of(path[2]);
	struct ibv_pd *pd = ibv_alloc_pd(vp_open());
	struct ibv_mr *mr = second ? ibv_reg_mr(pd, second->addr, 5000, 0) : NULL;

	CHECK(mr != NULL);
	CHECK_EQ(second->maps, 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK(ibv_reg_mr(pd, NULL, 5000, 0) == NULL); /* both are asked */
}

int main(int argc, char **argv)
{
	if (argc != 4)
		die("usage: peer_plugin FIRST SECOND FAILS");
	set_environment(argv);
	CHECK(!device_of(argv[1]));
	vp_open();
	check_log(argv);
	use(argv);
	vp_open();
	check_log(argv); /* once */
	CHECK_EQ(
		lines_with(log_file, "peer clients asked: first answered 0, second answered 0"), 1);
	return check_result();
}
