// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/mem_part.h"

#include "hca/mem/dm.h"
#include "hca/mem/import.h"
#include "hca/mem/mr_null.h"
#include "hca/mem/pd.h"
#include "hca/mem/peer_show.h"
#include "hca/mem/place.h"
#include "hca/mem/quarantine.h"
#include "hca/mem/share.h"
#include "peermem/gpu.h"
#include "peermem/registry.h"

static void forked_child(void)
{
	pd_forked_child();
	mr_null_forked_child();
	dm_forked_child();
	import_forked_child();
	quarantine_forked_child();
	peer_registry_forked_child();
	gpu_forked_child();
	peer_show_forked_child();
	place_forked_child();
}

const struct proc_part mem_part = {.forked_child = forked_child, .look = share_look};
