// SPDX-License-Identifier: BSD-3-Clause
/* Variables that mean nothing are named in the log, once, whether or not they would be needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

int main(void)
{
	char path[256], how[300];

	snprintf(path, sizeof path, "%s/log", getenv("WEFT_RUNTIME_DIR"));
	snprintf(how, sizeof how, "warn:%s", path);
	setenv("WEFT_LOG", how, 1);
	setenv("WEFT_SPIN_US", "soon", 1);
	setenv("WEFT_FAULT", "drop=1", 1);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(ibv_close_device(vp_open()), 0);
	CHECK_EQ(lines_with(path, "WEFT_SPIN_US=soon"), 1);
	CHECK_EQ(lines_with(path, "WEFT_FAULT=drop=1"), 1);
	return check_result();
}
