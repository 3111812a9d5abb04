#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Device files of a node for which the runtime directory has no room: who asks for the node is told,
# and gets them once there is room again.
if [ -z "$IN_MOUNT_NS" ]; then
	own='unshare -m --propagation private'
	[ "$(id -u)" = 0 ] || own='unshare -rm --propagation private'
	$own sh -c 'mount -t tmpfs weft-test /mnt' 2>/dev/null || {
		echo 'no mount namespace with a tmpfs to be had'
		exit 77
	}
	IN_MOUNT_NS=1 exec $own "$0" "$@"
fi
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft
R=$WEFT_RUNTIME_DIR
export WEFT_IDLE_EXIT=1
trap '"$WEFT" down -F lab >/dev/null 2>&1; umount "$R"; rm -rf "$T"' EXIT
mount -t tmpfs -o mode=0700,size=4m weft-test "$R"

rc 'up' 0 "$WEFT" up -F lab ib:3
dd if=/dev/zero of="$R/full" bs=4k 2>/dev/null
rc 'a node without room' 1 "$WEFT" run -F lab --node H1 -- true
same 'why, and where' \
	"weft: weftd cannot write the device files of node 'H1' to $R: No space left on device; make room there" \
	"$(grep '^weft:' "$T/err")"
rc 'one that has its files' 0 "$WEFT" run -F lab --node 0 -- true
rm "$R/full"
rc 'with room again' 0 "$WEFT" run -F lab --node H1 -- cat /sys/class/infiniband/weft0/node_desc
same 'they are there' H1 "$(cat "$T/out")"
finish
