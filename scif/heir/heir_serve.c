// SPDX-License-Identifier: BSD-3-Clause
#include "scif/heir/heir_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scif.h"
#include "scif/ep/ep.h"
#include "scif/heir/heir_msg.h"
#include "scif/link/cm.h"
#include "scif/link/fence.h"
#include "scif/link/service.h"
#include "scif/link/stream.h"
#include "scif/win/reg.h"
#include "scif/win/rma.h"

enum { FD_EP, FD_BACK, FD_FILE };

struct job {
	struct heir_question q;
	struct heir_msg m;
	struct heir_answer a;
	size_t answer_len;
	int send_fd; /* goes with the answer, and is closed */
	uint8_t data[HEIR_BYTES];
};

/* ---- what is asked ---- */

static int do_message(struct scif_ep *ep, struct job *j)
{
	int64_t n = j->q.arg[0];
	int fd = j->m.fd[FD_EP], ret;

	if (n < 1 || n > HEIR_BYTES || (j->q.op == HEIR_SEND && (size_t)n != j->m.len))
		return -EINVAL;
	if (j->q.op == HEIR_SEND)
		return stream_send(ep, fd, j->data, n, false);
	ret = stream_recv(ep, fd, j->data, n, false);
	j->answer_len = ret > 0 ? ret : 0;
	return ret;
}

static int do_accept(struct scif_ep *ep, struct job *j)
{
	struct scif_id peer;
	int fd = cm_accept(ep, j->m.fd[FD_EP], false, &peer);

	if (fd < 0)
		return fd;
	j->send_fd = fd;
	j->a.word = (uint64_t)peer.node << 16 | peer.port;
	return 0;
}

static int64_t do_register(struct scif_ep *ep, const struct job *j)
{
	struct weft_share_handle handle;

	if (j->m.len != sizeof(handle))
		return -EINVAL;
	memcpy(&handle, j->data, sizeof(handle));
	return reg_import(ep, &handle, j->q.arg[1], j->q.arg[0], j->q.arg[2], j->q.flags);
}

/* Nothing stays of it: it is synchronous, and no memory of ours is taken for granted later. */
static int do_copy_memory(struct scif_ep *ep, const struct job *j)
{
	struct rma_args a = {.write = j->q.arg[0],
		.memory = true,
		.len = j->q.arg[1],
		.roff = j->q.arg[2],
		.flags = (j->q.flags | SCIF_RMA_SYNC) & ~SCIF_RMA_USECACHE};
	int file = j->m.fd[FD_FILE], seals = file < 0 ? -1 : fcntl(file, F_GET_SEALS), ret;
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(file, &st) || j->q.arg[1] < 1 ||
		j->q.arg[1] > st.st_size)
		return -EINVAL;
	a.addr = mmap(NULL, a.len, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (a.addr == MAP_FAILED)
		return -ENOMEM;
	ret = rma_copy(ep, &a);
	munmap(a.addr, a.len);
	return ret;
}

static int do_copy(struct scif_ep *ep, const struct job *j)
{
	const struct rma_args a = {.write = j->q.arg[0],
		.len = j->q.arg[1],
		.roff = j->q.arg[2],
		.loff = j->q.arg[3],
		.flags = j->q.flags};

	return rma_copy(ep, &a);
}

static int do_mark(struct scif_ep *ep, struct job *j)
{
	int mark = 0, ret = fence_mark(ep, j->q.flags, &mark);

	j->a.word = mark;
	return ret;
}

static int64_t carry_out(struct scif_ep *ep, struct job *j)
{
	const int64_t *arg = j->q.arg;

	switch (j->q.op) {
	case HEIR_SEND:
	case HEIR_RECV:
		return do_message(ep, j);
	case HEIR_BIND:
		return cm_bind(ep, arg[0]);
	case HEIR_LISTEN:
		return cm_listen(ep, arg[0]);
	case HEIR_CONNECT:
		return cm_connect(ep, j->m.fd[FD_EP], (struct scif_id){arg[0], arg[1]}, arg[2]);
	case HEIR_ACCEPT:
		return do_accept(ep, j);
	case HEIR_REGISTER:
		return do_register(ep, j);
	case HEIR_UNREGISTER:
		return reg_unregister(ep, arg[0], arg[1]);
	case HEIR_COPY:
		return do_copy(ep, j);
	case HEIR_COPY_MEMORY:
		return do_copy_memory(ep, j);
	case HEIR_MARK:
		return do_mark(ep, j);
	case HEIR_WAIT:
		return fence_wait(ep, arg[0]);
	case HEIR_SIGNAL:
		return fence_signal(ep, arg[0], arg[1], arg[2], arg[3], j->q.flags);
	}
	return -EINVAL;
}

/* ---- carrying it out, and answering ---- */

static void finish(struct job *j)
{
	struct heir_msg m = {&j->a, sizeof(j->a), j->data, j->answer_len, {j->send_fd, -1, -1}};

	if (j->m.fd[FD_BACK] >= 0)
		heir_answer(j->m.fd[FD_BACK], &m); /* who asked may be gone */
	heir_drop(&j->m);
	if (j->send_fd >= 0)
		close(j->send_fd); /* the heir's is the last one, or none */
	free(j);
}

static void run(struct job *j)
{
	struct scif_ep *ep;

	j->a.ret = j->m.fd[FD_EP] < 0 ? -EINVAL : ep_find(j->m.fd[FD_EP], &ep);
	if (!j->a.ret) {
		j->a.ret = carry_out(ep, j);
		ep_put(ep);
	}
	finish(j);
}

static void *run_apart(void *arg)
{
	run(arg);
	return NULL;
}

bool heir_asked(int sock)
{
	struct job *j = calloc(1, sizeof(*j));
	int ret;

	if (!j)
		return false;
	j->send_fd = -1;
	j->m = (struct heir_msg){&j->q, sizeof(j->q), j->data, sizeof(j->data), {-1, -1, -1}};
	ret = heir_get(sock, &j->m);
	if (ret) {
		free(j);
		return ret != -ECONNRESET;
	}
	/* the service's thread may not wait for anybody */
	if (j->q.op == HEIR_SEND || j->q.op == HEIR_RECV) {
		run(j);
	} else if (service_thread(run_apart, j)) {
		j->a.ret = -ENOMEM;
		finish(j);
	}
	return true;
}
