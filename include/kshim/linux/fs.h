/* SPDX-License-Identifier: BSD-3-Clause */
/* Files, as far as clients look into those that are mapped. */
#pragma once

#include <linux/kernel.h>
#include <linux/types.h>
#include <sys/stat.h>

struct cdev;
struct vm_area_struct;

struct inode {
	umode_t i_mode;
	dev_t i_rdev;
	unsigned long i_ino;
	struct cdev *i_cdev; /* of a character device */
};

struct file {
	struct inode *f_inode;
	atomic_t f_count; /* of the references that clients hold */
	fmode_t f_mode;
	void *private_data;
};

struct file_operations {
	void *owner;
};

static inline struct inode *file_inode(const struct file *f)
{
	return f->f_inode;
}

/* A reference more, which fput() drops. */
struct file *get_file(struct file *f);
void fput(struct file *f);
