#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# cm_explain.sh BUILD PROGRAM: what rdma_cm says of its refusals, on this machine, where another fabric
# lives, and on a node of a simulated subnet; and that who did not ask is told once how to.
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft

ok 'another fabric' "$WEFT" up -F beside >"$T/out"
ok 'on this machine' "$WEFT" run -- "$2"
"$WEFT" down -F beside >/dev/null
rm "$WEFT_RUNTIME_DIR/log"
# The libraries of a process have one hint between them, with the path shim and without.
for how in --paths --no-paths; do
	rc "nobody asked, $how" 0 "$WEFT" run $how -- "$2" hint
	same "$how: one hint" 1 "$(grep -c 'weft\[[0-9]*\]: warn: something was refused' "$T/err")"
done
rc 'nobody asked, and nothing matters' 0 "$WEFT" run -- "$2" cleanup
same 'no hint' '' "$(cat "$T/err")"
ok 'a subnet' "$WEFT" up -F lab ft2:2,2,1 >"$T/out"
ok 'on a node of it' "$WEFT" run -F lab --node H1 -- "$2" node
"$WEFT" down -F lab >/dev/null
"$WEFT" down >/dev/null
finish
