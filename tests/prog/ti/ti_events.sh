#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The events of libweftti, in a network namespace of its own whose links come and go.
# usage: ti_events.sh BUILD PROGRAM
. "$(dirname "$0")/../netns.sh"
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft
export WEFT_IDLE_EXIT=60
unset WEFT_AUTOSTART
trap '"$WEFT" down >/dev/null 2>&1; rm -rf "$T"' EXIT
ip link set lo up
ok 'up' "$WEFT" up
ok 'the events' "$WEFT" run --no-paths -- "$2"
finish
