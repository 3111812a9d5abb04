/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices. */
#pragma once

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/types.h>

struct kobject {
	const char *name;
};

struct device {
	struct device *parent;
	struct kobject kobj;
	const char *init_name;
	void *driver_data;
	u64 *dma_mask;
	u64 coherent_dma_mask;
	int numa_node;
};

static inline const char *dev_name(const struct device *dev)
{
	return dev->init_name ? dev->init_name : "weft";
}

#define dev_err(dev, fmt, ...)  printk(KERN_ERR "%s: " fmt, dev_name(dev), ##__VA_ARGS__)
#define dev_warn(dev, fmt, ...) printk(KERN_WARNING "%s: " fmt, dev_name(dev), ##__VA_ARGS__)
#define dev_info(dev, fmt, ...) printk(KERN_INFO "%s: " fmt, dev_name(dev), ##__VA_ARGS__)
