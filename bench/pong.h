/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two ping-pongs of datagrams have in common. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "bench/median.h"

/* Ends the program with status 1 where something does not hold; errno is the reason. */
static inline void must(bool holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	exit(1);
}

/* Listens by TCP at that port, which says to others that the server is there. */
static inline void be_seen(uint16_t port)
{
	struct sockaddr_in self = {.sin_family = AF_INET, .sin_port = htons(port)};
	int sign = socket(AF_INET, SOCK_STREAM, 0);

	must(sign >= 0 && bind(sign, (struct sockaddr *)&self, sizeof self) == 0 &&
			listen(sign, 1) == 0,
		"listen");
}

/* Prints one way in microseconds, of n round trips in ns: the median and the average. */
static inline void print_one_way(double *took, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += took[i];
	printf("%.3f %.3f\n", median(took, n) / 2000, sum / (double)n / 2000);
}
