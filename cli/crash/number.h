/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers among the arguments of commands. */
#pragma once

#include <argp.h>
#include <stdint.h>

/* Parses a number from 0 to max, or ends the program with a usage error. */
uint64_t crash_number(struct argp_state *state, const char *text, uint64_t max);
/* The same from 1 on. */
uint64_t crash_positive(struct argp_state *state, const char *text, uint64_t max);
