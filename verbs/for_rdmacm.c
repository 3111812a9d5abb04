// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/for_rdmacm.h"

#include "hca/api/hca.h"
#include "rdv/fabrics.h"
#include "rdv/rdv.h"
#include "rdv/wire.h"

int weft_cm_attach(const struct fabric_page **page)
{
	return hca_open(page);
}

int weft_cm_call(uint32_t op, const void *call, size_t len, void *reply)
{
	return rdv_cm_call(op, call, len, reply);
}

int weft_cm_call_fd(uint32_t op, const void *call, size_t len, int fd)
{
	return rdv_cm_call_fd(op, call, len, fd);
}

int weft_cm_name_addr(const char *name, struct sockaddr_un *addr, int *dir_fd)
{
	return rdv_name_addr(name, addr, dir_fd);
}

int weft_cm_post(uint32_t op, const void *call, size_t len)
{
	return rdv_cm_post(op, call, len);
}

void weft_cm_publish(int (*publish)(
	int (*send)(void *conn, uint32_t op, const void *call, size_t len, int fd), void *conn))
{
	rdv_cm_publish(publish);
}

int weft_cm_path(const struct ibv_ah_attr *attr, uint8_t *mtu)
{
	return hca_path(attr, mtu);
}

bool weft_cm_has_others(void)
{
	return wire_mode() != WIRE_NEVER;
}

bool weft_cm_beside(char *text, size_t size, uint64_t guid)
{
	struct rdv_fabric all[RDV_FABRICS_MAX];
	size_t n = rdv_fabrics_find(all, guid);

	rdv_fabrics_text(text, size, all, n);
	return n;
}

int weft_cm_socket(void)
{
	return rdv_socket();
}

int weft_cm_check(void)
{
	return rdv_check();
}
