// SPDX-License-Identifier: BSD-3-Clause
/*
 * While one thread asks weftd, which is stopped, who owns a queue pair, another takes things away:
 * it does not wait for that question.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"

enum { NOBODY = 0xfffff0 };

struct asker {
	struct vp_end *e;
	_Atomic pid_t tid;
	atomic_bool done;
};

static void *ask(void *arg)
{
	struct asker *a = arg;
	struct vp_addr to = vp_addr(a->e);

	to.qpn = NOBODY;
	atomic_store(&a->tid, (pid_t)syscall(SYS_gettid));
	CHECK_EQ(vp_rtr(a->e, &to), 0);
	atomic_store(&a->done, true);
	return NULL;
}

static void take_away(struct ibv_mr *mr, struct vp_end *used, struct asker *a)
{
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK(!atomic_load(&a->done));
	check_case("destroy_qp");
	CHECK_EQ(ibv_destroy_qp(used->qp), 0);
	used->qp = NULL;
	CHECK(!atomic_load(&a->done));
}

int main(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end asks, used, other;
	struct ibv_mr *mr;
	pthread_t thread;
	struct asker a = {.e = &asks};
	pid_t weftd;

	vp_pair(&used, &other, &o);
	vp_make(&asks, used.ctx, &o);
	CHECK_EQ(vp_init(&asks), 0);
	mr = ibv_reg_mr(used.pd, used.buf, used.len, IBV_ACCESS_LOCAL_WRITE);
	weftd = weftd_pid();
	CHECK_EQ(kill(weftd, SIGSTOP), 0);
	pthread_create(&thread, NULL, ask, &a);
	while (!atomic_load(&a.tid))
		sched_yield();
	await_sleep(atomic_load(&a.tid));
	check_case("dereg_mr");
	take_away(mr, &used, &a);
	CHECK_EQ(kill(weftd, SIGCONT), 0);
	pthread_join(thread, NULL);
	vp_free(&asks);
	vp_pair_free(&used, &other);
	return check_result();
}
