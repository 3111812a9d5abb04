// SPDX-License-Identifier: BSD-3-Clause
/* Several fabrics of one host: each is found by others, and none is taken for what it is not. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/unix_names.h"
#include "rdv/admin.h"
#include "rdv/fabrics.h"
#include "tests/prog/rdv/help.h"

enum { NOBODY = 65534, QUICK_MS = 2000 };

/* That weftd among those that are found; NULL: it is not. */
static const struct rdv_fabric *find(pid_t pid)
{
	static struct rdv_fabric all[RDV_FABRICS_MAX];
	size_t n = rdv_fabrics_find(all, 0);

	for (size_t i = 0; i < n; i++)
		if (all[i].pid == pid)
			return &all[i];
	return NULL;
}

static bool is_gone(pid_t pid)
{
	double end = seconds() + QUICK_MS / 1e3;

	while (find(pid) && seconds() < end)
		usleep(1000);
	return !find(pid);
}

/* Whoever lives is found, stopped or not, and hides nobody; who is dead is not. */
static int others(void)
{
	const struct rdv_fabric *f;
	int32_t a, b;
	double since;

	CHECK_EQ(rdv_start(NULL, false, &a), 0);
	CHECK_EQ(rdv_start("b", false, &b), 0);
	f = find(a);
	CHECK(f && strcmp(f->name, "default") == 0 && f->uid == geteuid() && f->guid);
	f = find(b);
	CHECK(f && strcmp(f->name, "b") == 0);
	CHECK_EQ(kill(b, SIGSTOP), 0);
	since = seconds();
	for (int i = 0; i < 100; i++)
		CHECK(find(b));
	CHECK(seconds() - since < 100 * QUICK_MS / 1e3);
	CHECK(find(a)); /* though all that it has not accepted has its name, too */
	CHECK_EQ(kill(b, SIGKILL), 0);
	CHECK(is_gone(b));
	CHECK_EQ(rdv_shutdown(NULL), 0);
	CHECK(is_gone(a));
	return 0;
}

/* Names that anybody takes: one without a listener, one of nonsense, one of another user. */
static int liars(void)
{
	static const char *const names[] = {"weft-fabric/0/1/dead/00000000000000aa",
		"weft-fabric/0/1/a b/00000000000000ab", "weft-fabric/0/1/\n/00000000000000ac",
		"weft-fabric/0/1/x/zz", "weft-fabric/0/1/x/00000000000000ad/more",
		"weft-fabric/4294967295/-1/\xff\xfe/0", "weft-fabric/"};
	enum { NAMES = sizeof names / sizeof names[0] };
	struct rdv_fabric all[RDV_FABRICS_MAX];
	const struct rdv_fabric *f;
	int fd[NAMES], liar;

	for (int i = 0; i < NAMES; i++) {
		fd[i] = unix_name_take(names[i], SOCK_SEQPACKET);
		CHECK(fd[i] >= 0);
		if (i)
			CHECK_EQ(listen(fd[i], 1), 0);
	}
	for (size_t i = 0, n = rdv_fabrics_find(all, 0); i < n; i++)
		CHECK(all[i].pid != getpid());
	if (geteuid() == 0)
		CHECK_EQ(seteuid(NOBODY), 0);
	liar = rdv_fabric_show("default", 0xae);
	CHECK(liar >= 0);
	if (geteuid() == NOBODY)
		CHECK_EQ(seteuid(0), 0);
	f = find(getpid());
	CHECK(f && f->uid == (getuid() ? getuid() : NOBODY));
	close(liar);
	for (int i = 0; i < NAMES; i++)
		close(fd[i]);
	return 0;
}

/* What is said of them to people has room for some, and says when there are more. */
static int many(void)
{
	enum { N = 20 };
	struct rdv_fabric all[N];
	char text[128];

	for (int i = 0; i < N; i++)
		all[i] = (struct rdv_fabric){.name = "f", .uid = i, .pid = i};
	rdv_fabrics_text(text, sizeof text, all, 0);
	CHECK(!*text);
	rdv_fabrics_text(text, sizeof text, all, 2);
	CHECK(!strcmp(text, "fabric \"f\" of user 0 (in another pid namespace), fabric \"f\" of "
			    "user 1 (weftd 1)"));
	rdv_fabrics_text(text, sizeof text, all, N);
	CHECK(strstr(text, ", and others") && strlen(text) < sizeof text);
	for (size_t size = 1; size < sizeof text; size++) {
		memset(text, 'x', sizeof text);
		rdv_fabrics_text(text, size, all, N);
		CHECK(memchr(text, '\0', size) && (size == sizeof text || text[size] == 'x'));
	}
	return 0;
}

const struct test_case fabric_cases[] = {
	{"others", others},
	{"liars", liars},
	{"many", many},
	{0},
};
