// SPDX-License-Identifier: BSD-3-Clause
// The Ethernet address behind a GID.
#include "verbs/context.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/gid.h"

enum { NO_VLAN = 0xffff };

/* A group's address is a function of the group. */
static bool multicast_mac(const uint8_t *gid, uint8_t *mac)
{
	if (gid_is_ipv4(gid) && (gid[12] & 0xf0) == 0xe0) {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = gid[13] & 0x7f;
		memcpy(mac + 4, gid + 14, 2);
		return true;
	}
	if (gid[0] == 0xff) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, gid + 12, 4);
		return true;
	}
	return false;
}

/* A link-local address that was made from the Ethernet address. */
static bool eui64_mac(const uint8_t *gid, uint8_t *mac)
{
	if (gid[0] != 0xfe || gid[1] != 0x80 || gid[11] != 0xff || gid[12] != 0xfe)
		return false;
	memcpy(mac, gid + 8, 3);
	memcpy(mac + 3, gid + 13, 3);
	mac[0] ^= 0x02;
	return true;
}

/* A GID of our own: its interface's address. */
static int own_mac(int sock, const struct fabric_port *port, const uint8_t *gid, uint8_t *mac)
{
	for (uint32_t i = 0; i < FABRIC_MAX_GIDS; i++) {
		const struct fabric_gid *own = verbs_gid(port, i);
		struct ifreq req = {0};

		if (!own || memcmp(own->raw, gid, sizeof(own->raw)))
			continue;
		memcpy(req.ifr_name, own->ifname, sizeof(req.ifr_name) - 1);
		if (ioctl(sock, SIOCGIFHWADDR, &req))
			return -errno;
		memcpy(mac, req.ifr_hwaddr.sa_data, ETHERNET_LL_SIZE);
		return 0;
	}
	return -ENOENT;
}

/* What the kernel's ARP table has now; nothing is sent. */
static int arp_mac(int sock, const char *ifname, const uint8_t *gid, uint8_t *mac)
{
	struct arpreq req = {0};
	struct sockaddr_in *sin = (struct sockaddr_in *)&req.arp_pa;

	sin->sin_family = AF_INET;
	memcpy(&sin->sin_addr, gid + 12, sizeof(sin->sin_addr));
	memcpy(req.arp_dev, ifname, sizeof(req.arp_dev) - 1);
	if (ioctl(sock, SIOCGARP, &req) || !(req.arp_flags & ATF_COM))
		return -EHOSTUNREACH;
	memcpy(mac, req.arp_ha.sa_data, ETHERNET_LL_SIZE);
	return 0;
}

static int ask_kernel(
	const struct fabric_port *port, const struct ibv_global_route *grh, uint8_t *mac)
{
	const struct fabric_gid *source = verbs_gid(port, grh->sgid_index);
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (sock < 0)
		return -errno;
	rc = own_mac(sock, port, grh->dgid.raw, mac);
	if (rc == -ENOENT) {
		rc = -EHOSTUNREACH;
		if (source && gid_is_ipv4(grh->dgid.raw))
			rc = arp_mac(sock, source->ifname, grh->dgid.raw, mac);
	}
	close(sock);
	return rc;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
	uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	const uint8_t *dgid = attr->grh.dgid.raw;
	struct fabric_port port;
	int rc = verbs_read_port(attr->port_num, &port);

	(void)context;
	if (!rc && !attr->is_global)
		rc = -EINVAL;
	if (!rc && !multicast_mac(dgid, eth_mac) && !eui64_mac(dgid, eth_mac))
		rc = ask_kernel(&port, &attr->grh, eth_mac);
	if (rc)
		return to_errno(rc);
	if (vid)
		*vid = NO_VLAN;
	return 0;
}
