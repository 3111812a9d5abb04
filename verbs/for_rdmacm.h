/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What librdmacm takes from libibverbs beside the public verbs: this process's one connection
 * to weftd.  A version node of its own, so that librdmacm does not load with another libibverbs.
 * Functions return 0 or a negative errno; rdv/rdv.h has their contracts.
 */
#pragma once

#include <stddef.h>

struct fabric_page;
struct proto_msg;
struct sockaddr_un;

#pragma GCC visibility push(default)

/* Attaches the process; its live fabric page. */
int weft_cm_attach(const struct fabric_page **page);
int weft_cm_call(struct proto_msg *msg, const void *data, size_t len);
int weft_cm_call_fd(struct proto_msg *msg, int fd);
int weft_cm_post(struct proto_msg *msg, const void *data, size_t len);
int weft_cm_name_addr(const char *name, struct sockaddr_un *addr, int *dir_fd);
void weft_cm_publish(int (*publish)(
	int (*send)(void *conn, struct proto_msg *msg, const void *data, size_t len, int fd),
	void *conn));

/* The socket to weftd, only to be watched for its end; -1 if there is none. */
int weft_cm_socket(void);
/* Comes to a new weftd if the old one is gone. */
int weft_cm_check(void);

#pragma GCC visibility pop
