/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

struct crash_state;
struct journal_record;

/* A command under `weft crash`; argv[0] is "weft crash show"; the result is the exit code. */
int crash_cmd_show(int argc, char **argv);

/* "RDMA WRITE of 64 bytes at +0x40, ..." */
void crash_describe(FILE *to, const struct crash_state *s, const struct journal_record *r);
json_t *crash_describe_json(
	const struct crash_state *s, const struct journal_record *r, uint64_t index);
