/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of what packets from and to other machines need.  None blocks. */
#pragma once

struct check;

/* Whether UDP port 4791 is free, or this fabric's. */
void check_udp_port(struct check *c);

/* How much a socket holds while nobody reads it. */
void check_udp_room(struct check *c);

/* Whether the kernel takes and gives many packets at once (GSO, GRO). */
void check_udp_batches(struct check *c);

/* Whether a program can steer packets to the sockets of a group. */
void check_udp_steering(struct check *c);
