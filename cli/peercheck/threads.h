/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenarios of several threads that have regions; each in a process of its own. */
#pragma once

/* What scenario.c says of each. */
void threads_between(unsigned number); /* the point */
void threads_many(unsigned number);
