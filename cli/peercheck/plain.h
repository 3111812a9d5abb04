/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenarios of one thread, in which the device takes nothing away; each in a process of its own. */
#pragma once

/* What scenario.c says of each. */
void plain_load(unsigned number);
void plain_ranges(unsigned number);
void plain_whole(unsigned number);
void plain_part(unsigned number);
void plain_small(unsigned number);
void plain_reading(unsigned number);
void plain_two(unsigned number);
void plain_again(unsigned number);
void plain_nth(unsigned number); /* the call that fails */
void plain_keep(unsigned number);
