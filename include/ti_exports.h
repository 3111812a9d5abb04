/* SPDX-License-Identifier: BSD-3-Clause */
/* What the Transport Interface exports for authors of transport providers: ti_exports(3). */
#ifndef TI_EXPORTS_H
#define TI_EXPORTS_H

#include <sdp_ti.h>
#include <string.h> /* its strdup() is the one that the document lists */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes a description of the event, with what its data say, into buf: at most buf_len bytes, NUL
 * included.  data may be NULL.  Returns buf; NULL if there is none, or no room.
 */
char *ti_event_to_str(ti_event_t event, void *data, char *buf, u32 buf_len);

/* As ti_status_2_str(). */
char *ti_status_to_str(const ti_status_t status);

/* Writes the 4 bytes of an IPv4 address as "a.b.c.d" into buf, which has room for 16 bytes; buf. */
char *mk_inet_addr_p(unchar *IPv4_addr, char *buf);

#ifdef __cplusplus
}
#endif

#endif
