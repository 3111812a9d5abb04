/* SPDX-License-Identifier: BSD-3-Clause */
/* Which device and port a program means that leaves one or both open. */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct choice {
	char ca_name[NAME_MAX + 1];
	int portnum;
};

/*
 * ca_name may be NULL (any), portnum 0 (any).  If both are given they are the choice, whatever they
 * are.  Else the first device with an active InfiniBand port, or else with one whose link is up, or
 * else with a port that is not disabled; smi: among ports with a subnet management interface.  A
 * switch is its port 0.  If devices are there but none fits, the choice is one that does not exist.
 * -ENODEV: no such device or port, or no device at all.
 */
int choose_port(const char *ca_name, int portnum, bool smi, struct choice *out);

/* The device alone: a given name is the choice. */
int choose_ca(const char *ca_name, struct choice *out);
