/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

struct hca_channel;
struct hca_cq;

/* Puts a CQ on a channel's list, where hca_channel_get() looks for fired ones. */
void channel_add_cq(struct hca_channel *ch, struct hca_cq *cq);
void channel_del_cq(struct hca_channel *ch, struct hca_cq *cq);
