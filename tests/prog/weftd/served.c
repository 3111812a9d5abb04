// SPDX-License-Identifier: BSD-3-Clause
/* A program for served.sh, linked in several ways: says that it runs; "then PROGRAM..." becomes
 * that one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "then"))
		execvp(argv[2], argv + 2);
	puts("it runs");
	return 7;
}
