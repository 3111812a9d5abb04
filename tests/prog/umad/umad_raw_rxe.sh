#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# umad_raw_rxe.sh SOURCE BUILD PROGRAM EXPECTED RANDOM [SEED]: what umad_raw (PROGRAM) prints on the kernel's
# ib_umad, over rdma_rxe, must be what it prints on weft0 (EXPECTED), and so must be what umad_random does.
# Modules and an interface are needed, so a guest is: this one, if tools/guest runs it; else one is started where
# QEMU and a kernel for it are, with what umad_random printed on weft0 here as a seventh argument.
SOURCE=$1 BUILD=$2 PROGRAM=$3 EXPECTED=$4 RANDOM_USE=$5 SEED=${6:-1} WEFT=$7
GUEST=/run/guest/busybox # tools/guest-init puts it there
KERNEL=$SOURCE/build-kernel-bookworm
STEPS=2000
T=$(mktemp -d) || exit
trap 'rm -rf "$T"' EXIT
trap 'exit 1' INT TERM

skip() {
	echo "$*"
	exit 77
}

# What it does with weft0, on this machine.
with_weft() {
	"$SOURCE/tests/lib/with_shim.sh" "$BUILD" "$RANDOM_USE" "$SEED" $STEPS >"$T/weft" || exit
}

if [ ! -x $GUEST ]; then
	[ "$(uname -m)" = x86_64 ] || skip 'the guests are x86-64'
	command -v qemu-system-x86_64 >/dev/null || skip 'no QEMU: tools/setup ci'
	[ -e "$KERNEL/complete" ] || skip "no kernel for a guest: tools/debian-kernel bookworm $KERNEL"
	with_weft
	"$SOURCE/tools/guest" "$KERNEL" "$0" "$SOURCE" "$BUILD" "$PROGRAM" "$EXPECTED" "$RANDOM_USE" "$SEED" \
		"/run/guest/bare$T/weft"
	exit
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
status=0
"$PROGRAM" | diff "$EXPECTED" - || status=1
if [ -z "$WEFT" ]; then
	with_weft
	WEFT=$T/weft
fi
# Methods that are in use are news on its console, which is slow.
dmesg -n 1
"$RANDOM_USE" "$SEED" $STEPS >"$T/kernel" || status=1
diff "$T/kernel" "$WEFT" >"$T/diff" || status=1
if [ -s "$T/diff" ]; then
	echo "umad_random $SEED $STEPS, < on the kernel, > on weft0:"
	head -n 20 "$T/diff"
fi
wc -l <"$T/kernel"
exit $status
