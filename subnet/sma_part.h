/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of a port: P_Keys, GUIDs, SL to VL, VL arbitration (IBA volume 1, 14.2.5.5 to .9): see
 * struct sma_attr. */
#pragma once

#include "subnet/sma.h"

uint16_t sma_get_pkeys(struct sma *c);
uint16_t sma_set_pkeys(struct sma *c);
uint16_t sma_get_guid_info(struct sma *c);
uint16_t sma_set_guid_info(struct sma *c);
uint16_t sma_get_sl2vl(struct sma *c);
uint16_t sma_set_sl2vl(struct sma *c);
uint16_t sma_get_vl_arb(struct sma *c);
uint16_t sma_set_vl_arb(struct sma *c);
