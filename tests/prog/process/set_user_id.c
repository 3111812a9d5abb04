// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program that set_user_id.sh makes set-user-ID root: opens the adapter and registers memory,
 * with "root" as root in every respect first.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char buf[4096];
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	(void)argv;
	if (geteuid() || (argc > 1 && (setgid(0) || setuid(0))))
		return 2;
	list = ibv_get_device_list(NULL);
	ctx = list && *list ? ibv_open_device(*list) : NULL;
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd ||
		!ibv_reg_mr(pd, buf, sizeof buf, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE))
		return 1;
	puts("ok");
	return 0;
}
