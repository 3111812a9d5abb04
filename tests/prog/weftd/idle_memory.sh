#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A weftd that has served a program and waits for the next soon has at most 1.9 MB of memory: what
# it needs to begin goes back to the system (base/resident.h).
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft
MOST_KB=1900

pid() { "$WEFT" status --json | sed -n 's/^  "pid": \([0-9]*\).*/\1/p'; }
resident() { awk '/^VmRSS:/ { print $2 }' "/proc/$weftd/status"; }

"$WEFT" up >/dev/null
weftd=$(pid)
ok 'a program runs' "$WEFT" run true
kb=$(resident)
tries=0
while [ "$kb" -gt $MOST_KB ] && [ $tries -lt 200 ]; do
	sleep 0.1
	tries=$((tries + 1))
	kb=$(resident)
done
ok "of it $kb kB are resident, at most $MOST_KB" test "$kb" -gt 0 -a "$kb" -le $MOST_KB
"$WEFT" down >/dev/null
finish
