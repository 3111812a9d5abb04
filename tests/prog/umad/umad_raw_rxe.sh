#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# umad_raw_rxe.sh SOURCE PROGRAM EXPECTED: what umad_raw prints on the kernel's ib_umad, over rdma_rxe,
# must be what it prints on weft0.  Modules and an interface are needed, so a guest is: this one, if
# tools/guest runs it; else one is started where QEMU and a kernel for it are.
SOURCE=$1 PROGRAM=$2 EXPECTED=$3
GUEST=/run/guest/busybox # tools/guest-init puts it there
KERNEL=$SOURCE/build-kernel-bookworm

skip() {
	echo "$*"
	exit 77
}

if [ ! -x $GUEST ]; then
	[ "$(uname -m)" = x86_64 ] || skip 'the guests are x86-64'
	command -v qemu-system-x86_64 >/dev/null || skip 'no QEMU: tools/setup ci'
	[ -e "$KERNEL/complete" ] || skip "no kernel for a guest: tools/debian-kernel bookworm $KERNEL"
	exec "$SOURCE/tools/guest" "$KERNEL" "$0" "$@"
fi
command -v rdma >/dev/null || skip 'no rdma command: tools/setup test'
for module in crc32_generic dummy rdma_rxe ib_umad; do
	$GUEST modprobe $module || exit
done
ip link add dm0 type dummy && ip link set dm0 up && rdma link add rxe0 type rxe netdev dm0 || exit
# GIDs of link-local addresses come once nobody else was found to have them; devices by another thread.
tries=0
until [ -e /sys/class/infiniband_mad/issm0 ] && [ -c /dev/infiniband/umad0 ] &&
	grep -q '^fe80:.*[1-9a-f]' /sys/class/infiniband/rxe0/ports/1/gids/0 &&
	! ip -6 addr show dev dm0 | grep -q tentative; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || { echo 'rxe0 does not come up'; exit 1; }
	sleep 0.1
done
"$PROGRAM" | diff "$EXPECTED" -
