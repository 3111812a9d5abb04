/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of <scif.h> by other names, for the source file that has the kernel's convention under
 * theirs (kernel.c).  Their contracts are there; user.c compares the types.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct scif_portID;
struct scif_pinned_pages;
struct scif_range;
struct scif_client;

#define USER(name) __asm__("scif_" #name)

int user_open(void) USER(open);
int user_bind(int epd, uint16_t pn) USER(bind);
int user_listen(int epd, int backlog) USER(listen);
int user_connect(int epd, struct scif_portID *dst) USER(connect);
int user_accept(int epd, struct scif_portID *peer, int *newepd, int flags) USER(accept);
int user_close(int epd) USER(close);
int user_send(int epd, void *msg, int len, int flags) USER(send);
int user_recv(int epd, void *msg, int len, int flags) USER(recv);
off_t user_register(int epd, void *addr, size_t len, off_t off, int prot, int flags) USER(register);
int user_unregister(int epd, off_t offset, size_t len) USER(unregister);
int user_readfrom(int epd, off_t loff, size_t len, off_t roff, int flags) USER(readfrom);
int user_writeto(int epd, off_t loff, size_t len, off_t roff, int flags) USER(writeto);
int user_vreadfrom(int epd, void *addr, size_t len, off_t roff, int flags) USER(vreadfrom);
int user_vwriteto(int epd, void *addr, size_t len, off_t roff, int flags) USER(vwriteto);
int user_fence_mark(int epd, int flags, int *mark) USER(fence_mark);
int user_fence_wait(int epd, int mark) USER(fence_wait);
int user_fence_signal(int epd, off_t loff, uint64_t lval, off_t roff, uint64_t rval, int flags)
	USER(fence_signal);
int user_get_node_ids(uint16_t *nodes, int len, uint16_t *self) USER(get_node_ids);
int user_pin_pages(void *addr, size_t len, int prot, int flags, struct scif_pinned_pages **pinned)
	USER(pin_pages);
int user_unpin_pages(struct scif_pinned_pages *pinned) USER(unpin_pages);
off_t user_register_pinned_pages(int epd, struct scif_pinned_pages *pinned, off_t off, int flags)
	USER(register_pinned_pages);
int user_get_pages(int epd, off_t off, size_t len, struct scif_range **pages) USER(get_pages);
int user_put_pages(struct scif_range *pages) USER(put_pages);
int user_client_register(struct scif_client *client) USER(client_register);
void user_client_unregister(struct scif_client *client) USER(client_unregister);

#undef USER
