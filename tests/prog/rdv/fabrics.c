// SPDX-License-Identifier: BSD-3-Clause
/* Several fabrics of one host: each is found by others, and none is taken for what it is not. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unix_names.h"
#include "rdv/admin.h"
#include "rdv/claim.h"
#include "rdv/fabrics.h"
#include "rdv/rdv.h"
#include "tests/prog/rdv/help.h"

enum { NOBODY = 65534, QUICK_MS = 2000, WAIT_S = 20 };

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

/* True: this process is another user now, until seteuid(0).  Root of a user namespace may not. */
static bool become_other(void)
{
	return geteuid() == 0 && seteuid(NOBODY) == 0;
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
	bool other;

	for (int i = 0; i < NAMES; i++) {
		fd[i] = unix_name_take(names[i], SOCK_SEQPACKET);
		CHECK(fd[i] >= 0);
		if (i)
			CHECK_EQ(listen(fd[i], 1), 0);
	}
	for (size_t i = 0, n = rdv_fabrics_find(all, 0); i < n; i++)
		CHECK(all[i].pid != getpid());
	other = become_other();
	liar = rdv_fabric_show("default", 0xae);
	CHECK(liar >= 0);
	if (other)
		CHECK_EQ(seteuid(0), 0);
	f = find(getpid());
	CHECK(f && f->uid == (other ? NOBODY : getuid()));
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

/* ---- claims of queue pair numbers ---- */

/* Can somebody else have those numbers? */
static bool is_free(long qpn)
{
	int fd = claim_take(qpn / CLAIM_QPNS);

	if (fd < 0) {
		CHECK_EQ(fd, -EADDRINUSE);
		return false;
	}
	close(fd);
	return true;
}

static bool becomes_free(long qpn)
{
	double end = seconds() + WAIT_S;

	while (!is_free(qpn) && seconds() < end)
		usleep(1000);
	return is_free(qpn);
}

/* As long as a process lives nobody else gets its numbers, whatever becomes of weftd. */
static int claims(void)
{
	struct kid a = kid_start(), b = kid_start();
	long qpn = kid_do(&a, DO_LEASE, 0, 0), id = kid_do(&a, ASK_ID, 0, 0), other;

	CHECK(qpn > 0 && !is_free(qpn));
	for (int again = 0; again < 3; again++) {
		weftd_kill(NULL);
		CHECK(!is_free(qpn));
		/* who has not come to the new one yet is of the fabric all the same */
		CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), -ENOENT);
		other = (qpn + (CLAIMS / 2) * CLAIM_QPNS) % (CLAIMS * CLAIM_QPNS);
		CHECK_EQ(kid_do(&b, DO_FIND, other, 0), -EADDRNOTAVAIL);
		CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
		CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), id);
	}
	weftd_kill(NULL);
	kid_end(&a, SIGKILL);
	CHECK(becomes_free(qpn));
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), -EADDRNOTAVAIL);
	kid_end(&b, SIGKILL);
	return 0;
}

/* A program that closes all has the numbers all the same, and has their socket back. */
static int claims_closed(void)
{
	struct kid a = kid_start(), b = kid_start();
	long qpn = kid_do(&a, DO_LEASE, 0, 0), id = kid_do(&a, ASK_ID, 0, 0);

	CHECK_EQ(kid_do(&a, DO_CLOSE_FDS, 0, 0), 0);
	CHECK(!is_free(qpn));
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	weftd_kill(NULL);
	CHECK(!is_free(qpn));
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	/* Where nobody has it, the next weftd takes it again. */
	CHECK_EQ(kid_do(&a, DO_CLOSE_CLAIM, qpn, 0), 1);
	weftd_kill(NULL);
	CHECK(becomes_free(qpn));
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	CHECK(!is_free(qpn));
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), id);
	CHECK_EQ(kid_do(&a, DO_CLOSE_CLAIM, qpn, 0), 1);
	/* Who has closed its segment, too, cannot come again, and leaves nothing behind. */
	CHECK_EQ(kid_do(&a, DO_CLOSE_FDS, 0, 0), 0);
	weftd_kill(NULL);
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), -ESTALE);
	CHECK(becomes_free(qpn));
	kid_end(&a, SIGKILL);
	kid_end(&b, SIGKILL);
	return 0;
}

/* ... unless another fabric has it by then: that one's it stays. */
static int claims_lost(void)
{
	struct kid a = kid_start(), b = kid_start();
	long qpn = kid_do(&a, DO_LEASE, 0, 0);
	int shown, theirs;

	CHECK_EQ(kid_do(&a, DO_CLOSE_CLAIM, qpn, 0), 1);
	weftd_kill(NULL);
	CHECK(becomes_free(qpn));
	shown = rdv_fabric_show("another", 0xaf);
	theirs = claim_take(qpn / CLAIM_QPNS);
	CHECK(shown >= 0 && theirs >= 0);
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	CHECK(logged("were leased to another process while weftd was down"));
	CHECK_EQ(status_of(NULL, "refusals.lease_conflict"), 1);
	CHECK(kid_do(&b, DO_FIND, qpn, 0) < 0);
	close(shown);
	close(theirs);
	kid_end(&a, SIGKILL);
	kid_end(&b, SIGKILL);
	return 0;
}

/* A child has numbers of its own, and does not hold its parent's. */
static int claims_forked(void)
{
	struct kid a = kid_start();
	long qpn = kid_do(&a, DO_LEASE, 0, 0), child = kid_do(&a, DO_FORK, 0, 0), other;

	CHECK(child > 0);
	other = kid_do(&a, DO_LEASE, 0, 0);
	CHECK(other > 0 && other / CLAIM_QPNS != qpn / CLAIM_QPNS);
	CHECK_EQ(kill(a.pid, SIGKILL), 0);
	waitpid(a.pid, NULL, 0);
	weftd_kill(NULL);
	CHECK(becomes_free(qpn));
	CHECK(!is_free(other));
	kid_send(&a, DO_EXIT, 0, 0);
	close(a.to);
	close(a.from);
	CHECK(becomes_free(other));
	return 0;
}

/* Another user has taken all names, and answers nobody: it is said who, and this one goes on. */
static int claims_squatted(void)
{
	const struct rlimit many = {CLAIMS + 100, CLAIMS + 100};
	static int fd[CLAIMS];
	struct kid a, b;
	char who[64];
	long qpn;

	if (setrlimit(RLIMIT_NOFILE, &many))
		return puts("not as many descriptors to be had"), SKIP;
	if (getuid() == 0 && (!become_other() || seteuid(0)))
		return puts("this root may not become another user"), SKIP;
	a = kid_start();
	b = kid_start();
	if (getuid() == 0)
		CHECK(become_other());
	for (uint32_t n = 1; n < CLAIMS; n++) {
		char name[32];

		snprintf(name, sizeof name, "weft-qpn/%u", n);
		fd[n] = unix_name_take(name, SOCK_SEQPACKET);
		CHECK(fd[n] >= 0);
	}
	if (getuid() == 0)
		CHECK_EQ(seteuid(0), 0);
	qpn = kid_do(&a, DO_LEASE, 0, 0);
	CHECK(qpn > 0);
	CHECK(kid_do(&b, DO_LEASE, 0, 0) / CLAIM_QPNS != qpn / CLAIM_QPNS);
	snprintf(who, sizeof who, "are taken, by %s%u among others",
		getuid() ? "somebody" : "user ", NOBODY);
	CHECK(getuid() || logged(who));
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), kid_do(&a, ASK_ID, 0, 0));
	weftd_kill(NULL);
	CHECK_EQ(kid_do(&a, DO_CHECK, 0, 0), 0);
	CHECK_EQ(kid_do(&b, DO_FIND, qpn, 0), kid_do(&a, ASK_ID, 0, 0));
	CHECK_EQ(status_of(NULL, "refusals.lease_conflict"), 0);
	for (uint32_t n = 1; n < CLAIMS; n++)
		close(fd[n]);
	CHECK(kid_do(&a, DO_LEASE, 0, 0) > 0);
	kid_end(&a, SIGKILL);
	kid_end(&b, SIGKILL);
	return 0;
}

const struct test_case fabric_cases[] = {
	{"others", others},
	{"liars", liars},
	{"many", many},
	{"claims", claims},
	{"claims_closed", claims_closed},
	{"claims_lost", claims_lost},
	{"claims_forked", claims_forked},
	{"claims_squatted", claims_squatted},
	{0},
};
