#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rpma_both.sh PROGRAM OURS: the program prints the same on our librpma and on the distribution's,
# both over our verbs.
set -eu
program=$1 ours=$2
for theirs in /usr/lib/*-linux-gnu/librpma.so.0; do :; done
if [ ! -e "$theirs" ] || [ ! -x "$program" ]; then
	echo "no librpma0 and librpma-dev here"
	exit 77
fi
LD_PRELOAD=$ours timeout 60 "$program" >"$WEFT_RUNTIME_DIR/ours" || {
	echo "on ours: exit $?, after"
	tail -n 3 "$WEFT_RUNTIME_DIR/ours"
	exit 1
}
LD_PRELOAD=$theirs timeout 60 "$program" >"$WEFT_RUNTIME_DIR/theirs" || {
	echo "on the distribution's: exit $?, after"
	tail -n 3 "$WEFT_RUNTIME_DIR/theirs"
	exit 1
}
[ "$(wc -l <"$WEFT_RUNTIME_DIR/ours")" -gt 400 ]
diff "$WEFT_RUNTIME_DIR/ours" "$WEFT_RUNTIME_DIR/theirs"
