/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What runs, or is written, once when a process opens the device, and would else lie alone among
 * what a device that has only been opened never touches.  Kept together it costs fewer page faults,
 * and these are a tenth of the time that opening takes (docs/performance-log.md, "Device open").
 */
#pragma once

/* Before a function: beside the library's constructors. */
#define AT_OPEN __attribute__((section(".text.startup")))

/* Before a variable of static storage, zero or not: on a page that the loader wrote to already. */
#define AT_OPEN_DATA __attribute__((section(".data.open")))
