/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What librdmacm takes from libibverbs beside the public verbs: this process's one connection
 * to weftd.  A version node of its own, so that librdmacm does not load with another libibverbs.
 * Functions return 0 or a negative errno; rdv/rdv.h has their contracts.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fabric_page;
struct sockaddr_un;

#pragma GCC visibility push(default)

/* Attaches the process; its live fabric page. */
int weft_cm_attach(const struct fabric_page **page);
int weft_cm_call(uint32_t op, const void *call, size_t len, void *reply);
int weft_cm_call_fd(uint32_t op, const void *call, size_t len, int fd);
int weft_cm_post(uint32_t op, const void *call, size_t len);
int weft_cm_name_addr(const char *name, struct sockaddr_un *addr, int *dir_fd);
void weft_cm_publish(int (*publish)(
	int (*send)(void *conn, uint32_t op, const void *call, size_t len, int fd), void *conn));

/* As hca_path() of hca/api/hca.h. */
int weft_cm_path(const struct ibv_ah_attr *attr, uint8_t *mtu);

/* Are there other hosts, as far as WEFT_WIRE says? */
bool weft_cm_has_others(void);

/* Do other fabrics than that of the node of that GUID live on this host, and which ones (text)? */
bool weft_cm_beside(char *text, size_t size, uint64_t guid);

/* The socket to weftd, only to be watched for its end; -1 if there is none. */
int weft_cm_socket(void);
/* Comes to a new weftd if the old one is gone. */
int weft_cm_check(void);

#pragma GCC visibility pop
