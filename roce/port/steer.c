// SPDX-License-Identifier: BSD-3-Clause
#include "roce/port/steer.h"

#include <errno.h>
#include <sys/socket.h>

#include "wire/roce.h"

/* The word of the BTH whose lower three bytes are the number; the program sees no UDP header. */
enum { QPN_WORD = 4 };

struct writer {
	struct sock_filter *code;
	size_t len, max;
};

static void put(struct writer *w, struct sock_filter insn)
{
	if (w->len < w->max)
		w->code[w->len] = insn;
	w->len++;
}

/* Numbers from `from` on that no bound before has taken go to that socket. */
static void put_bound(struct writer *w, uint32_t from, uint16_t index)
{
	put(w, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, from, 0, 1));
	put(w, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, index));
}

static int ranges_fit(const struct steer_range *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (r[i].first > r[i].last || r[i].last > ROCE_QPN_MASK ||
			(i && r[i].first <= r[i - 1].last))
			return 0;
	return 1;
}

int steer_program(const struct steer_range *r, size_t n, struct sock_filter *code, size_t max)
{
	struct writer w = {code, 0, max < STEER_CODE_MAX ? max : STEER_CODE_MAX};
	uint32_t taken_from = ROCE_QPN_MASK + 1;

	if (!ranges_fit(r, n))
		return -EINVAL;
	put(&w, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, QPN_WORD));
	put(&w, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ROCE_QPN_MASK));
	for (size_t i = n; i-- > 0;) {
		if (r[i].last + 1 < taken_from)
			put_bound(&w, r[i].last + 1, STEER_ELSE);
		/* one bound for neighbours of one socket */
		while (i && r[i - 1].index == r[i].index && r[i - 1].last + 1 == r[i].first)
			i--;
		put_bound(&w, r[i].first, r[i].index);
		taken_from = r[i].first;
	}
	put(&w, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, STEER_ELSE));
	return w.len > w.max ? -E2BIG : (int)w.len;
}

int steer_attach(int fd, struct sock_filter *code, size_t len)
{
	const struct sock_fprog prog = {.len = len, .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof prog) ? -errno
											: 0;
}
