/* SPDX-License-Identifier: BSD-3-Clause */
/* SwitchInfo and the forwarding tables (IBA volume 1, 14.2.5.4, .10, .12): see struct sma_attr. */
#pragma once

#include "subnet/sma.h"

uint16_t sma_get_switch_info(struct sma *c);
uint16_t sma_set_switch_info(struct sma *c);
uint16_t sma_get_lft(struct sma *c);
uint16_t sma_set_lft(struct sma *c);
uint16_t sma_get_mft(struct sma *c);
uint16_t sma_set_mft(struct sma *c);
