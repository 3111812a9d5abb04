/* SPDX-License-Identifier: BSD-3-Clause */
/* The one device. */
#pragma once

#include "rdmacm/rdmacm.h"

struct device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;                  /* device_xrcd() */
	const struct fabric_page *_Atomic page; /* live */
	uint8_t max_responder, max_initiator;
};

/* The one device, opened once for the life of the process. */
int device_get(const struct device **dev);

/* The parent's protection and XRC domains are not the child's. */
void device_forked_child(void);

/* The XRC domain of all ids of this process that name none. */
int device_xrcd(struct ibv_xrcd **xrcd);

/* Index of one of our GIDs, -ENOENT. */
int device_gid_index(const uint8_t gid[16]);

/* The MTU of the port now, enum ibv_mtu: it follows the link's. */
uint8_t device_mtu(const struct device *dev);

/* A node of a simulated subnet: its port is InfiniBand's, and has no IP address. */
bool device_is_simulated(void);

/* The first address of that family; loopback: that one. */
int device_address(uint8_t family, bool loopback, struct cm_addr *addr);
