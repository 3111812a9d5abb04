/* SPDX-License-Identifier: BSD-3-Clause */
/* PortInfo (IBA volume 1, 14.2.5.6) and Mellanox's ExtendedPortInfo: see struct sma_attr. */
#pragma once

#include "subnet/sma.h"

uint16_t sma_get_port_info(struct sma *c);
uint16_t sma_set_port_info(struct sma *c);
uint16_t sma_get_ext_port_info(struct sma *c);
uint16_t sma_set_ext_port_info(struct sma *c);
