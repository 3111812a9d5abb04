/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An extension of Weft's librpma.so.0 (version node WEFT_1.0): several reads or writes in one call.
 * No release of librpma has it.  A queue that is filled one small request at a time runs empty
 * between two of them; here the adapter gets the whole list at once, and only the last one is asked
 * to complete.
 */
#pragma once

#include <librpma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most parts of one list. */
#define RPMA_LIST_MAX 64

/* One transfer of a list: len bytes between a region of ours and one of the peer's. */
struct rpma_list_part {
	struct rpma_mr_local *local;
	size_t local_offset;
	struct rpma_mr_remote *remote;
	size_t remote_offset;
	size_t len;
};

/*
 * Post n parts, 1 to RPMA_LIST_MAX, in their order, as n calls of rpma_write() or rpma_read() with
 * op_context would, but that flags hold for the last alone: the others complete only if they fail.
 * A flush after the list covers all of it.  Each part takes a place of the send queue, and of the
 * completion queue, too.  *posted (not NULL) is how many were posted, also on failure.
 *
 * 0, or RPMA_E_INVAL: an argument is NULL or 0, there are too many parts, or one of them is not
 * within its regions: nothing was posted; RPMA_E_PROVIDER: ibv_post_send() failed, as the send
 * queue is full: those before *posted are under way and do not complete by themselves.
 */
int rpma_write_list(struct rpma_conn *conn, const struct rpma_list_part *part, size_t n, int flags,
	const void *op_context, size_t *posted);
int rpma_read_list(struct rpma_conn *conn, const struct rpma_list_part *part, size_t n, int flags,
	const void *op_context, size_t *posted);

#ifdef __cplusplus
}
#endif
