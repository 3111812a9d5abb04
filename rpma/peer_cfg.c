// SPDX-License-Identifier: BSD-3-Clause
/* Peer configurations and their descriptor: one byte, 0 or 1. */
#include "rpma/peer_cfg.h"

#include <stdlib.h>

#include "rpma/log.h"

enum { DESCRIPTOR_SIZE = 1 };

static int create(bool direct_write, struct rpma_peer_cfg **pcfg_ptr)
{
	struct rpma_peer_cfg *pcfg = malloc(sizeof *pcfg);

	if (!pcfg)
		return RPMA_E_NOMEM;
	atomic_init(&pcfg->direct_write_to_pmem, direct_write);
	*pcfg_ptr = pcfg;
	return 0;
}

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr)
{
	return pcfg_ptr ? create(false, pcfg_ptr) : RPMA_E_INVAL;
}
RPMA_SINCE_0_10(rpma_peer_cfg_new);

int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr)
{
	if (!pcfg_ptr)
		return RPMA_E_INVAL;
	free(*pcfg_ptr);
	*pcfg_ptr = NULL;
	return 0;
}
RPMA_SINCE_0_10(rpma_peer_cfg_delete);

int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported)
{
	if (!pcfg)
		return RPMA_E_INVAL;
	atomic_store_explicit(&pcfg->direct_write_to_pmem, supported, memory_order_relaxed);
	return 0;
}
RPMA_SINCE_0_10(rpma_peer_cfg_set_direct_write_to_pmem);

int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported)
{
	if (!pcfg || !supported)
		return RPMA_E_INVAL;
	*supported = atomic_load_explicit(&pcfg->direct_write_to_pmem, memory_order_relaxed);
	return 0;
}
RPMA_SINCE_0_10(rpma_peer_cfg_get_direct_write_to_pmem);

int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc)
{
	bool direct_write;

	if (!desc || rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct_write))
		return RPMA_E_INVAL;
	*(uint8_t *)desc = direct_write;
	return 0;
}
RPMA_SINCE_0_10(rpma_peer_cfg_get_descriptor);

int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size)
{
	if (!pcfg || !desc_size)
		return RPMA_E_INVAL;
	*desc_size = DESCRIPTOR_SIZE;
	return 0;
}
RPMA_SINCE_0_10(rpma_peer_cfg_get_descriptor_size);

int rpma_peer_cfg_from_descriptor(
	const void *desc, size_t desc_size, struct rpma_peer_cfg **pcfg_ptr)
{
	uint8_t byte;

	if (!desc || !pcfg_ptr)
		return RPMA_E_INVAL;
	if (desc_size < DESCRIPTOR_SIZE) {
		LOG_ERROR("a peer configuration of %zu bytes", desc_size);
		return RPMA_E_INVAL;
	}
	byte = *(const uint8_t *)desc;
	if (byte > 1) {
		LOG_ERROR("a peer configuration with the byte 0x%02x", byte);
		return RPMA_E_INVAL;
	}
	return create(byte, pcfg_ptr);
}
RPMA_SINCE_0_10(rpma_peer_cfg_from_descriptor);
