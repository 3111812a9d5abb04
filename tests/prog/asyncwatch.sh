#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ibv_asyncwatch while addresses come and go and a link goes down and up, in a network namespace.
. "$(dirname "$0")/lib.sh"
WEFT=$BUILD/weft

new_net='unshare -n'
[ "$(id -u)" = 0 ] || new_net='unshare -rn'
for tool in ip ibv_asyncwatch stdbuf; do
	command -v $tool >/dev/null || { echo "no $tool; run: tools/setup test"; exit 77; }
done
$new_net true 2>/dev/null || { echo 'no network namespace to be had'; exit 77; }
$new_net ip link add v0 type veth peer name v1 2>/dev/null || { echo 'no veth to be had'; exit 77; }

cat >"$T/inside" <<'END'
WEFT=$1 OUT=$2
# The number of GID changes seen, once it is at least $1.
changes() {
	i=0
	until [ "$(grep -c GID_CHANGE "$OUT")" -ge "$1" ] || [ $i = 100 ]; do
		i=$((i + 1))
		sleep 0.05
	done
	grep -c GID_CHANGE "$OUT"
}
# Runs the rest; prints its name and whether more changes than before were seen.
step() {
	before=$(grep -c GID_CHANGE "$OUT")
	name=$1
	shift
	"$@"
	[ "$(changes $((before + 1)))" -gt "$before" ] && echo "$name"
}
ip link set lo up
ip link add v0 type veth peer name v1
ip link set v1 up
"$WEFT" up >/dev/null
"$WEFT" run stdbuf -o0 ibv_asyncwatch >"$OUT" 2>&1 &
watch=$!
i=0
until grep -q 'async event FD' "$OUT" || [ $i = 100 ]; do i=$((i + 1)); sleep 0.05; done
step added ip addr add 10.9.8.7/32 dev lo
step removed ip addr del 10.9.8.7/32 dev lo
ip addr add 10.9.7.1/24 dev v0
step up ip link set v0 up
step down ip link set v0 down
step up_again ip link set v0 up
kill $watch
wait $watch
"$WEFT" down >/dev/null
END
: >"$T/watched"
same 'each change is an event' 'added removed up down up_again ' \
	"$($new_net sh "$T/inside" "$WEFT" "$T/watched" | tr '\n' ' ')"
[ "$FAILS" = 0 ] || cat "$T/watched"
finish
