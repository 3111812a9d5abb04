// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/for_rdmacm.h"

#include "hca/api/hca.h"
#include "rdv/rdv.h"

int weft_cm_attach(const struct fabric_page **page)
{
	return hca_open(page);
}

int weft_cm_call(struct proto_msg *msg, const void *data, size_t len)
{
	return rdv_cm_call(msg, data, len);
}

int weft_cm_call_fd(struct proto_msg *msg, int fd)
{
	return rdv_cm_call_fd(msg, fd);
}

int weft_cm_name_addr(const char *name, struct sockaddr_un *addr, int *dir_fd)
{
	return rdv_name_addr(name, addr, dir_fd);
}

int weft_cm_post(struct proto_msg *msg, const void *data, size_t len)
{
	return rdv_cm_post(msg, data, len);
}

void weft_cm_publish(int (*publish)(
	int (*send)(void *conn, struct proto_msg *msg, const void *data, size_t len, int fd),
	void *conn))
{
	rdv_cm_publish(publish);
}

int weft_cm_socket(void)
{
	return rdv_socket();
}

int weft_cm_check(void)
{
	return rdv_check();
}
