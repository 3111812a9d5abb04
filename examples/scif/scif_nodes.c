// SPDX-License-Identifier: BSD-3-Clause
/*
 * Greets every node of the network, in the kernel's calling convention:
 *
 *   scif_nodes SECONDS
 *
 * A client is told of each node that comes, its own included; it connects to that node's port and
 * hears its pid.  Meanwhile the program tells its own pid to whoever connects.
 */
#include <linux/scif.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 2052, TRIES = 20, MANY = 16 };

static int ask_pid(u8 node)
{
	const struct timespec nap = {.tv_nsec = 50 * 1000 * 1000};
	struct scif_port_id dst = {node, PORT};
	scif_epd_t epd = scif_open();
	int pid = 0, ret = epd ? -ECONNREFUSED : -ENOMEM;

	/* a node is there before it listens */
	for (int i = 0; i < TRIES && ret == -ECONNREFUSED; i++) {
		if (i)
			nanosleep(&nap, NULL);
		ret = scif_connect(epd, &dst);
	}
	if (ret > 0) /* the local port */
		ret = scif_recv(epd, &pid, sizeof(pid), SCIF_RECV_BLOCK);
	if (epd)
		scif_close(epd);
	return ret < 0 ? ret : pid;
}

static void probe(struct scif_peer_dev *spdev)
{
	int pid = ask_pid(spdev->dnode);

	if (pid > 0)
		printf("node %u is there, pid %d\n", spdev->dnode, pid);
	else
		printf("node %u is there, and does not answer: %d\n", spdev->dnode, pid);
}

static void gone(struct scif_peer_dev *spdev)
{
	printf("node %u is gone\n", spdev->dnode);
}

/* Nodes ask each other while they are being told of each other: this needs a thread of its own. */
static void *answer(void *arg)
{
	struct scif_pollepd p = {.epd = (scif_epd_t)arg, .events = EPOLLIN};
	struct scif_port_id peer;
	int pid = getpid();
	scif_epd_t epd;

	while (scif_poll(&p, 1, -1) > 0 && p.revents == EPOLLIN) {
		if (scif_accept(p.epd, &peer, &epd, 0))
			continue;
		scif_send(epd, &pid, sizeof(pid), SCIF_SEND_BLOCK);
		scif_close(epd);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct scif_client client = {.name = "scif_nodes", .probe = probe, .remove = gone};
	scif_epd_t listener = scif_open();
	pthread_t thread;
	int ret;

	if (argc != 2) {
		fprintf(stderr, "usage: scif_nodes SECONDS\n");
		return 2;
	}
	setlinebuf(stdout);
	if (!listener || scif_bind(listener, PORT) < 0 || scif_listen(listener, MANY)) {
		fprintf(stderr, "port %d of this node is taken\n", PORT);
		return 1;
	}
	if (pthread_create(&thread, NULL, answer, listener))
		return 1;
	ret = scif_client_register(&client);
	if (!ret) {
		sleep(atoi(argv[1]));
		scif_client_unregister(&client);
	}
	scif_close(listener); /* ends the thread */
	pthread_join(thread, NULL);
	return ret ? 1 : 0;
}
