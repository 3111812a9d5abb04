/* SPDX-License-Identifier: BSD-3-Clause */
/* REJ, DREQ, DREP: how it ends. */
#pragma once

#include "cm/cm.h"

void on_rej(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void on_dreq(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void on_drep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);
