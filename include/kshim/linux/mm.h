/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of this process.  A page frame number is an address here, shifted; areas are those of
 * /proc/self/maps.
 */
#pragma once

#include <linux/fs.h>
#include <linux/rwsem.h>
#include <linux/types.h>

#define PAGE_SHIFT        12
#define PAGE_SIZE         (1UL << PAGE_SHIFT)
#define PAGE_MASK         (~(PAGE_SIZE - 1))
#define PAGE_ALIGN(a)     (((a) + PAGE_SIZE - 1) & PAGE_MASK)
#define offset_in_page(p) ((unsigned long)(p) & ~PAGE_MASK)

#define VM_READ           0x00000001UL
#define VM_WRITE          0x00000002UL
#define VM_EXEC           0x00000004UL
#define VM_SHARED         0x00000008UL
#define VM_PFNMAP         0x00000400UL
#define VM_IO             0x00004000UL
#define VM_MIXEDMAP       0x10000000UL
#define FAULT_FLAG_WRITE  0x01

#define page_to_pfn(p)    ((unsigned long)(p) >> PAGE_SHIFT)
#define pfn_to_page(n)    ((struct page *)((unsigned long)(n) << PAGE_SHIFT))
#define pfn_valid(n)      1
#define page_to_phys(p)   ((phys_addr_t)(unsigned long)(p))
#define virt_to_page(p)   ((struct page *)((unsigned long)(p)&PAGE_MASK))

struct page;
struct mmu_notifier;

struct vm_operations_struct {
	void (*open)(struct vm_area_struct *vma);
	void (*close)(struct vm_area_struct *vma);
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	unsigned long vm_flags, vm_pgoff;
	struct file *vm_file; /* NULL: of no file */
	const struct vm_operations_struct *vm_ops;
	struct mm_struct *vm_mm;
	struct vm_area_struct *vm_next, *vm_prev;
};

struct mm_struct {
	struct rw_semaphore mmap_sem;
	struct mmu_notifier *notifiers; /* the shim's */
};

#define mmap_read_lock(mm)   down_read(&(mm)->mmap_sem)
#define mmap_read_unlock(mm) up_read(&(mm)->mmap_sem)

/*
 * The first area that ends behind addr, as it was when a client first asked for it: it stays
 * while the shim does.  NULL: there is none.
 */
struct vm_area_struct *find_vma(struct mm_struct *mm, unsigned long addr);

/* 0, with the frame of a mapped address; -EINVAL. */
int follow_pfn(struct vm_area_struct *vma, unsigned long addr, unsigned long *pfn);

/* Has the kernel fault the page in. */
int handle_mm_fault(
	struct mm_struct *mm, struct vm_area_struct *vma, unsigned long addr, unsigned int flags);

/* Clients rely on it to come with this one, as a kernel's does. */
#include <linux/sched.h>
