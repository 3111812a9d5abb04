// SPDX-License-Identifier: BSD-3-Clause
/* What connections call in the rooms above theirs. */
#include "scif/link/parts.h"
#include "scif/fork.h"
#include "scif/heir/heir.h"
#include "scif/heir/heir_call.h"
#include "scif/heir/heir_serve.h"
#include "scif/win/map.h"
#include "scif/win/reg.h"

const struct link_calls link_calls = {
	.watch_forks = watch_forks,
	.heir_asked = heir_asked,
	.heir_end = heir_end,
	.heir_forget = heir_forget,
	.reg_told = reg_told,
	.map_asked = map_asked,
	.reg_unused = reg_unused,
};
