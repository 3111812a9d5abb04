/* SPDX-License-Identifier: BSD-3-Clause */
/* Character devices. */
#pragma once

#include <linux/device.h>
#include <linux/fs.h>

struct cdev {
	struct kobject kobj;
	dev_t dev;
};
