#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# up.sh ADDRESS ADDRESS6: in tools/guest's guest: its network with these addresses and the kernel's rdma_rxe
# on it; then serves the channel.
GUEST=/run/guest/busybox # tools/guest-init puts it there
[ -x $GUEST ] || { echo 'up.sh: run it in a guest'; exit 2; }
for module in virtio_net virtio_console crc32_generic rdma_rxe ib_uverbs rdma_ucm sch_netem; do
	$GUEST modprobe $module || exit
done
ip address add "$1/24" dev eth0 && ip address add "$2/64" dev eth0 nodad && ip link set eth0 up &&
	rdma link add rxe0 type rxe netdev eth0 || exit
# Programs of this project's find its libraries beside them; here they are to have the system's.
export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu
exec /usr/bin/python3 "$(dirname "$0")/agent.py"
