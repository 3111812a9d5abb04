// SPDX-License-Identifier: BSD-3-Clause
/* Descriptors of regions, and the peer's regions that are made from them. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "rpma/log.h"
#include "rpma/mr.h"

/* On the wire, little endian. */
struct descriptor {
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
	uint8_t usage;
} __attribute__((packed));
_Static_assert(sizeof(struct descriptor) == 21, "what other implementations send");

int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc)
{
	struct descriptor d;

	if (!mr || !desc)
		return RPMA_E_INVAL;
	d.addr = htole64((uintptr_t)mr->mr->addr);
	d.size = htole64(mr->mr->length);
	d.rkey = htole32(mr->mr->rkey);
	d.usage = mr->usage;
	memcpy(desc, &d, sizeof d);
	return 0;
}
RPMA_SINCE_0_10(rpma_mr_get_descriptor);

int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size)
{
	if (!mr || !desc_size)
		return RPMA_E_INVAL;
	*desc_size = sizeof(struct descriptor);
	return 0;
}
RPMA_SINCE_0_10(rpma_mr_get_descriptor_size);

static int parse(const struct descriptor *d, struct rpma_mr_remote *mr)
{
	mr->addr = le64toh(d->addr);
	mr->size = le64toh(d->size);
	mr->rkey = le32toh(d->rkey);
	mr->usage = d->usage;
	if (!mr->usage) {
		LOG_ERROR("a region's descriptor without any usage");
		return RPMA_E_INVAL;
	}
	if (!mr->size || mr->size - 1 > UINT64_MAX - mr->addr) {
		LOG_ERROR("no region can be at 0x%llx with 0x%llx bytes",
			(unsigned long long)mr->addr, (unsigned long long)mr->size);
		return RPMA_E_NOSUPP;
	}
	return 0;
}

int rpma_mr_remote_from_descriptor(
	const void *desc, size_t desc_size, struct rpma_mr_remote **mr_ptr)
{
	struct rpma_mr_remote parsed, *mr;
	struct descriptor d;
	int ret;

	if (!desc || !mr_ptr)
		return RPMA_E_INVAL;
	if (desc_size < sizeof d) {
		LOG_ERROR("a region's descriptor of %zu bytes", desc_size);
		return RPMA_E_INVAL;
	}
	memcpy(&d, desc, sizeof d);
	ret = parse(&d, &parsed);
	if (ret)
		return ret;
	mr = malloc(sizeof *mr);
	if (!mr)
		return RPMA_E_NOMEM;
	*mr = parsed;
	*mr_ptr = mr;
	return 0;
}
RPMA_SINCE_0_10(rpma_mr_remote_from_descriptor);

int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size)
{
	if (!mr || !size)
		return RPMA_E_INVAL;
	*size = mr->size;
	return 0;
}
RPMA_SINCE_0_10(rpma_mr_remote_get_size);

int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type)
{
	if (!mr || !flush_type)
		return RPMA_E_INVAL;
	*flush_type = mr->usage &
		      (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
	return 0;
}
RPMA_SINCE_0_10(rpma_mr_remote_get_flush_type);

int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr)
{
	if (!mr_ptr)
		return RPMA_E_INVAL;
	free(*mr_ptr);
	*mr_ptr = NULL;
	return 0;
}
RPMA_SINCE_0_10(rpma_mr_remote_delete);
