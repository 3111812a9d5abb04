/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking the kernel for its links, addresses and routes; a part of what links libmnl (rtnl_dep). */
#pragma once

#include <libmnl/libmnl.h>
#include <stdint.h>

/*
 * Calls cb with each entry that there is; type: RTM_GETLINK, RTM_GETADDR or RTM_GETROUTE.  Does not
 * wait for anybody but the kernel.  0 or a negative errno; -EINTR: something changed meanwhile, so
 * that entries may be missing.
 */
int rtnl_dump(uint16_t type, mnl_cb_t cb, void *arg);

/*
 * Asks one question, a whole message but for its flags and number, that has one answer, and calls
 * cb with it.  Does not wait for anybody but the kernel.  0 or a negative errno, the kernel's or
 * cb's (as libmnl has them: MNL_CB_ERROR with errno).
 */
int rtnl_ask(struct nlmsghdr *question, mnl_cb_t cb, void *arg);

/* The attribute of that type, behind a header of so many bytes, with at least len bytes; NULL. */
const struct nlattr *rtnl_attr(
	const struct nlmsghdr *nlh, size_t header, uint16_t type, size_t len);

/* Of an RTM_NEWADDR or RTM_DELADDR: the host's own address, not the other end's; NULL. */
const struct nlattr *rtnl_own_address(const struct nlmsghdr *nlh, size_t len);
