/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls to weftd. */
#pragma once

#include "rdmacm/rdmacm.h"

/* The number of the id's channel, 0: it has none. */
uint32_t channel_of(const struct ident *id);

/* A call whose payload is a struct cm_id_call: READY, NOTIFY, DISCONNECT, DESTROY. */
int call_about(uint32_t op, uint32_t handle);

/* The same, without waiting for the answer where weftd takes it at once. */
int tell_about(uint32_t op, uint32_t handle);

/* Rejects what id was asked or answered, with n bytes of private data. */
int call_reject(const struct ident *id, uint16_t reason, const void *priv, uint8_t n);

/* May a message with room for max bytes of private data have those?  0 or -EINVAL. */
int check_private_data(const void *data, size_t len, size_t max);

/*
 * Copies the program's private data, len bytes, to priv, which has room for max; *priv_len is len
 * then.  -EINVAL: more than max bytes, or there are none.
 */
int copy_private_data(uint8_t *priv, uint8_t *priv_len, const void *data, size_t len, size_t max);
