// SPDX-License-Identifier: BSD-3-Clause
/* A parent and its child share a page of the parent's, and the child greets through it. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/share.h>

enum { PAGE = 4096 };

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	return list && *list ? ibv_open_device(*list) : NULL;
}

static int child(const int from[2])
{
	struct weft_share_handle handle;
	struct ibv_context *context;
	char *page;

	close(from[1]); /* else the parent's end would not be seen */
	if (read(from[0], &handle, sizeof handle) != sizeof handle || !(context = open_device()))
		return 1;
	page = weft_share_map(context, &handle, 0, PAGE, PROT_READ | PROT_WRITE, 0, NULL);
	if (!page) {
		perror("weft_share_map");
		return 1;
	}
	strcpy(page, "hello from the child");
	return weft_share_unmap(page, PAGE);
}

int main(void)
{
	struct weft_share_handle handle;
	struct ibv_context *context;
	struct weft_share *share;
	int to[2], status = 1;
	char *page;
	pid_t pid;

	if (!weft_share_there()) {
		fprintf(stderr, "this libibverbs is not Weft's\n");
		return 1;
	}
	if (pipe(to) < 0 || (pid = fork()) < 0)
		return 1;
	if (pid == 0)
		return child(to);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	context = open_device();
	if (page == MAP_FAILED || !context)
		return 1;
	share = weft_share_export(context, page, PAGE, PROT_READ | PROT_WRITE, &handle);
	if (!share) {
		perror("weft_share_export");
		return 1;
	}
	if (write(to[1], &handle, sizeof handle) == sizeof handle)
		waitpid(pid, &status, 0);
	puts(page);
	weft_share_close(share);
	return status != 0;
}
