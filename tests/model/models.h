/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of things to explore: models that must hold, and mutants that must be caught. */
#pragma once

#include "mc.h"

struct model_case {
	const char *name;      /* of the mutant, or of the variant */
	struct mc_model model; /* by value: variants differ in bounds and threads */
	int mutant;            /* 0: must hold; else the value of model_mutant: must be caught */
	bool slow;             /* only with --long */
};

/* Which deliberate defect the model's code has now; 0 = none. */
extern int model_mutant;

extern const struct model_case token_cases[], ticket_cases[], slot_cases[], srq_cases[],
	arm_cases[], fired_cases[], exec_cases[], agent_cases[], umad_recv_cases[],
	umad_send_cases[], umad_tids_cases[];
