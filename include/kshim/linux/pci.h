/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI devices: the HCA passes one to dma_map, all of it 0 unless a checker fills it in. */
#pragma once

#include <linux/device.h>
#include <linux/types.h>

struct pci_dev {
	struct device dev; /* first: what is passed is its address */
	unsigned int devfn;
	unsigned short vendor, device;
};

#define to_pci_dev(d) container_of(d, struct pci_dev, dev)

static inline const char *pci_name(const struct pci_dev *p)
{
	return dev_name(&p->dev);
}
