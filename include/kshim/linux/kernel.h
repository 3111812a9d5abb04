/* SPDX-License-Identifier: BSD-3-Clause */
/* What everything uses: printing, rounding, containers, complaints. */
#pragma once

#include <linux/compiler.h>
#include <linux/types.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERN_SOH     "\001"
#define KERN_EMERG   KERN_SOH "0"
#define KERN_ALERT   KERN_SOH "1"
#define KERN_CRIT    KERN_SOH "2"
#define KERN_ERR     KERN_SOH "3"
#define KERN_WARNING KERN_SOH "4"
#define KERN_NOTICE  KERN_SOH "5"
#define KERN_INFO    KERN_SOH "6"
#define KERN_DEBUG   KERN_SOH "7"
#define KERN_CONT    KERN_SOH "c"

#ifndef pr_fmt
#define pr_fmt(fmt) fmt
#endif

#define pr_err(fmt, ...)           printk(KERN_ERR pr_fmt(fmt), ##__VA_ARGS__)
#define pr_warn(fmt, ...)          printk(KERN_WARNING pr_fmt(fmt), ##__VA_ARGS__)
#define pr_warning                 pr_warn
#define pr_notice(fmt, ...)        printk(KERN_NOTICE pr_fmt(fmt), ##__VA_ARGS__)
#define pr_info(fmt, ...)          printk(KERN_INFO pr_fmt(fmt), ##__VA_ARGS__)
#define pr_debug(fmt, ...)         printk(KERN_DEBUG pr_fmt(fmt), ##__VA_ARGS__)
#define pr_err_ratelimited         pr_err
#define pr_warn_once               pr_warn

#define ARRAY_SIZE(a)              (sizeof(a) / sizeof *(a))
#define ALIGN(x, a)                (((x) + ((__typeof__(x))(a)-1)) & ~((__typeof__(x))(a)-1))
#define ALIGN_DOWN(x, a)           ((x) & ~((__typeof__(x))(a)-1))
#define IS_ALIGNED(x, a)           (((x) & ((__typeof__(x))(a)-1)) == 0)
#define DIV_ROUND_UP(n, d)         (((n) + (d)-1) / (d))
#define round_up(x, a)             ALIGN(x, a)
#define round_down(x, a)           ALIGN_DOWN(x, a)
#define min_t(type, a, b)          ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b)          ((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define min(a, b)                  min_t(__typeof__(a), a, b)
#define max(a, b)                  max_t(__typeof__(a), a, b)
#define upper_32_bits(n)           ((u32)((n) >> 16 >> 16))
#define lower_32_bits(n)           ((u32)(n))
#define container_of(at, type, of) ((type *)(void *)((char *)(at)-offsetof(type, of)))
#define BUILD_BUG_ON(condition)    _Static_assert(!(condition), "BUILD_BUG_ON")

#define WARN_ON(condition)         kshim_warn_on(!!(condition), #condition, __FILE__, __LINE__)
#define WARN_ON_ONCE(condition)    WARN_ON(condition)
#define WARN(condition, ...)       (WARN_ON(condition) ? printk(KERN_WARNING __VA_ARGS__), true : false)
#define BUG_ON(condition)          kshim_bug_on(!!(condition), #condition, __FILE__, __LINE__)
#define BUG()                      BUG_ON(1)
#define might_sleep()              ((void)0)
#define dump_stack()               ((void)0)

/*
 * The kernel's log: Weft's (WEFT_LOG), at the level that the text begins with, else as a warning.
 * Its format is not checked: a client prints a uint64_t by %llx, which is right in a kernel.
 */
int printk(const char *fmt, ...);

/* Logs the place if wrong, and returns wrong; the second ends the program if wrong. */
bool kshim_warn_on(bool wrong, const char *what, const char *file, int line);
void kshim_bug_on(bool wrong, const char *what, const char *file, int line);
