#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# in_netns.sh PROGRAM ARGS...: runs it in a network namespace of its own, where UDP port 4791 is that
# test's alone: every test that opens it is started by this.  Other than loopback there is a link, v0,
# with 198.51.100.1/24 and 2001:db8:77::1/64, so that the host counts as one with a network.  Skips the
# test where no namespace is to be had.
if [ -z "$IN_OWN_NETNS" ]; then
	command -v ip >/dev/null || {
		echo 'no ip; run: tools/setup test'
		exit 77
	}
	new='unshare --net'
	[ "$(id -u)" = 0 ] || new='unshare --map-root-user --net'
	$new ip link add v0 type veth peer name v1 2>/dev/null || {
		echo 'no network namespace with a veth to be had'
		exit 77
	}
	IN_OWN_NETNS=1 exec $new "$0" "$@"
fi
unset IN_OWN_NETNS
AWAIT_LINK=$(cd "$(dirname "$0")/../../tools" && pwd)/await-link # for two_hosts.c
export AWAIT_LINK
export WEFT_WIRE="${WEFT_WIRE:-auto}" # not as in tests that share a network
# The kernel's own link-local addresses would be good for nothing for a second or two, and come in the
# middle of the test as a change of the GIDs.
ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 addrgenmode none &&
	ip link set v1 addrgenmode none && ip link set v0 up && ip link set v1 up &&
	ip addr add 198.51.100.1/24 dev v0 && ip addr add 2001:db8:77::1/64 dev v0 nodad &&
	ip addr add fe80::1/64 dev v0 nodad || exit 1
exec "$@"
