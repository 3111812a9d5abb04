/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

struct hca_channel;
struct hca_cq;

/* Puts a CQ on a channel, and takes it off, with the events that nobody took. */
void channel_add_cq(struct hca_channel *ch, struct hca_cq *cq);
void channel_del_cq(struct hca_channel *ch, struct hca_cq *cq);
