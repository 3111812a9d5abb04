#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A weftd that has served a program and waits for the next soon has little memory: what it needs to
# begin goes back to the system (base/resident.h).  How much of the libraries stays mapped is the
# kernel's doing: since Linux 6.18 one fault maps all of a file's folio, which may be as large as
# the file.  So this asks what weftd has of its own, and whether the rest shrinks.
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft
MOST_OWN_KB=450
unset MALLOC_PERTURB_ # of meson: with it malloc writes to all that it gives, needed or not

pid() { "$WEFT" status --json | sed -n 's/^  "pid": \([0-9]*\).*/\1/p'; }
status_kb() { awk -v name="$1:" '$1 == name { print $2 }' "/proc/$weftd/status"; }
has_shrunk() { test "$(status_kb VmRSS)" -le $(($(status_kb VmHWM) * 4 / 5)); }

"$WEFT" up >/dev/null
weftd=$(pid)
ok 'a program runs' "$WEFT" run true
tries=0
while ! has_shrunk && [ $tries -lt 200 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
ok "of $(status_kb VmHWM) kB $(status_kb VmRSS) kB are resident, at most 4/5" has_shrunk
own=$(status_kb RssAnon)
ok "$own kB of them are its own, at most $MOST_OWN_KB" test "$own" -gt 0 -a "$own" -le $MOST_OWN_KB
"$WEFT" down >/dev/null
finish
