/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions whose bytes only functions of their kind reach. */
#pragma once

#include <stdint.h>

struct hca_mr;
struct hca_pd;
struct mr_kind;

/*
 * Registers length bytes of that kind (kind->io is not NULL, kind->flags is MR_OWNED), which work
 * requests address from iova on; of: what the kind needs to know, in hca_mr.of, for kind->drop to
 * give back if this succeeds.  The kind may serve other regions, too, and stays.  hca_mr_dereg()
 * ends it, once no function runs any more.
 *
 * Errors: -EINVAL an empty or wrapping range, unknown access flags, on demand; -ENOMEM.
 */
int mr_add_owned(struct hca_pd *pd, const struct mr_kind *kind, void *of, uint64_t length,
	uint64_t iova, unsigned access, struct hca_mr **out);
