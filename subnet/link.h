/* SPDX-License-Identifier: BSD-3-Clause */
/* Links: training, states, what a change of a state brings with it. */
#pragma once

#include "subnet/state.h"

/*
 * Tries to bring the link of a port up: both ends plugged, one of them polling, a width and a speed
 * that both have enabled.  Then both are in state INIT.
 */
void link_train(struct subnet *s, uint32_t port);

/* Takes it down, if it is up; the port's physical state becomes phys, its peer's that of its
 * LinkDownDefaultState. */
void link_drop(struct subnet *s, uint32_t port, uint8_t phys);

/* PortState becomes that, with the events, PortStateChange and trap that belong to it. */
void link_set_state(struct subnet *s, uint32_t port, uint8_t state);
