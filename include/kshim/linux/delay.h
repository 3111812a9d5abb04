/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for time to pass. */
#pragma once

/* Sleeps. */
void msleep(unsigned int ms);
void usleep_range(unsigned long least, unsigned long most);
#define udelay(us) usleep_range(us, us)
#define mdelay(ms) msleep(ms)
