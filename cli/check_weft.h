/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of this installation.  check_weftd_runs() blocks for 5 seconds if weftd does not answer;
 * those after it then say that they need it.
 */
#pragma once

#include <stdbool.h>

struct check;

void check_runtime_dir(struct check *c);
void check_weftd_file(struct check *c);
/* Of the fabric: WEFT_FABRIC, whether its weftd answers, and WEFT_NODE. */
void check_weftd_runs(struct check *c);
void check_other_fabrics(struct check *c);
void check_libibverbs(struct check *c);
void check_device_files(struct check *c);

/* Whether those above found nothing that keeps others from asking weftd. */
bool check_can_ask_weftd(void);
