#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What ibv_asyncwatch and ibv_devinfo tell of a network whose addresses and links come and go.
needs='ibv_asyncwatch stdbuf'
. "$(dirname "$0")/../netns.sh"
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft
export WEFT_IDLE_EXIT=60
unset WEFT_AUTOSTART
watcher=
trap '[ -z "$watcher" ] || kill $watcher; "$WEFT" down >/dev/null 2>&1; rm -rf "$T"' EXIT

events() { grep -c "$1" "$T/watch"; }

# at_least EVENT COUNT: it is told so often within 20 s.
at_least() {
	i=0
	while [ "$(events "$1")" -lt "$2" ] && [ $i -lt 400 ]; do
		sleep 0.05
		i=$((i + 1))
	done
	ok "$2 events $1, not $(events "$1")" test "$(events "$1")" -ge "$2"
}

# comes EVENT COUNT: just so often.  GIDs change more often: IPv6 addresses come by themselves.
comes() {
	at_least "$@"
	same "events $1" "$2" "$(events "$1")"
}

state() { "$WEFT" run -- ibv_devinfo -d weft0 | sed -n 's/^[[:space:]]*state:[[:space:]]*//p'; }
mtu() { "$WEFT" run -- ibv_devinfo -d weft0 | sed -n 's/^[[:space:]]*active_mtu:[[:space:]]*//p'; }
gid() { "$WEFT" run -- ibv_devinfo -d weft0 -v | grep -c "$1"; }

ip link set lo up
ok 'up' "$WEFT" up
same 'a host without a network' 'PORT_ACTIVE (4)' "$(state)"
same 'its MTU' '4096 (5)' "$(mtu)"
: >"$T/watch"
stdbuf -oL "$WEFT" run -- ibv_asyncwatch >"$T/watch" 2>&1 &
watcher=$!
comes 'async event FD' 1

ip link add veth0 type veth peer name veth1
ip link set veth1 up
ip link set veth0 up
ip addr add 10.99.0.1/24 dev veth0
at_least EVENT_GID_CHANGE 1
i=0
while [ "$(gid '10\.99\.0\.1')" = 0 ] && [ $i -lt 400 ]; do
	sleep 0.05
	i=$((i + 1))
done
same 'the new GID' 1 "$(gid '10\.99\.0\.1')"
same 'the MTU of an Ethernet' '1024 (3)' "$(mtu)"
same 'no port event so far' 0 "$(events EVENT_PORT)"

ip link set veth0 down
comes PORT_ERR 1
same 'the port is down' 'PORT_DOWN (1)' "$(state)"
same 'the GID is gone' 0 "$(gid '10\.99\.0\.1')"
ip link set veth0 up
comes PORT_ACTIVE 1
same 'the port is up' 'PORT_ACTIVE (4)' "$(state)"
same 'the GID is back' 1 "$(gid '10\.99\.0\.1')"

# The carrier alone, with the other end.
ip link set veth1 down
comes PORT_ERR 2
ip link set veth1 up
comes PORT_ACTIVE 2
sed 's/^/  /' "$T/watch"
finish
