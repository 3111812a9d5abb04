#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# share_example.sh PROGRAM: what examples/share/README.md promises.
set -u
if [ "${WEFT_SHARE:-}" = never ]; then
	out=$("$1" 2>&1) && exit 1
	echo "$out" | grep -q "weft_share_export: Operation not supported"
	exit
fi
[ "$("$1")" = "hello from the child" ]
