// SPDX-License-Identifier: BSD-3-Clause
/* What programs and the checker find in libweftkshim.so.0 besides the kernel's functions. */
#include <string.h>

#include "kshim/devices.h"
#include "kshim/hook.h"
#include "kshim/module.h"
#include "kshim/nvidia.h"
#include "kshim/slab.h"

KSHIM_EXPORT const struct weft_peer_device *weft_kshim_device(const char *name)
{
	static const struct weft_peer_device *const devices[] = {
		&nvidia_device, &kfd_device, &vma_device};

	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
		if (strcmp(devices[i]->name, name) == 0)
			return devices[i];
	return NULL;
}

KSHIM_EXPORT const struct kshim weft_kshim = {
	.watch = hook_watch,
	.objects = slab_objects,
	.modules = module_references,
	.failed = hook_failed,
	.old_freeing = nvidia_old_freeing,
	.about = slab_about,
};
