/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program has seen as received is a success for its sender, though it ends at once: each
 * end writes down what it has seen, and now and then its process exits as soon as it has.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct end;

/* Message index of the round has come, in success, into that slot; perhaps does not return. */
void seen_note(struct end *e, unsigned lane, unsigned poster, uint32_t index, unsigned slot);
/* Had the other end, which is dead, seen request index of ours? */
bool seen_by_other(const struct end *e, uint32_t index);
