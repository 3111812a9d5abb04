/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenarios in which the device takes memory away; each in a process of its own. */
#pragma once

/* What scenario.c says of each. */
void take_live(unsigned number);
void take_again(unsigned number);
void take_two(unsigned number);
void take_part(unsigned number);
void take_other(unsigned number); /* the point at which it goes */
void take_late(unsigned number);
