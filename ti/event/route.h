/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes, as the kernel's messages have them. */
#pragma once

#include <libmnl/libmnl.h>

/* RTM_NEWROUTE, RTM_DELROUTE: learns gateways of default routes. */
void route_heed(const struct nlmsghdr *nlh);

/* Tells of their events, on the system thread. */
void route_tell(const struct nlmsghdr *nlh);
