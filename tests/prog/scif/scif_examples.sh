#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# scif_examples.sh BUILD SOURCE: the programs of examples/scif/ do what their README says.
set -u
E="$1/examples/scif"
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT

# The server may not listen yet.
retry()
{
	i=0
	while [ $i -lt 100 ]; do
		"$@" && return 0
		sleep 0.2
		i=$((i + 1))
	done
	return 1
}

# The page of scif(7) has the program's text.
sed '/^#include <scif.h>/,$!d' "$2/examples/scif/scif_hello.c" >"$T/text"
sed '/^\.Sh EXAMPLES/,/^\.Ed/!d' "$2/man/scif.7" | sed '/^#include <scif.h>/,$!d; /^\.Ed/d' >"$T/page"
[ -s "$T/page" ] && diff "$T/text" "$T/page" || exit 1

timeout 50 "$E/scif_hello" >"$T/hello" &
retry env WEFT_NODE=1 "$E/scif_hello" client 2>/dev/null || exit 1
wait $! || exit 1
[ "$(cat "$T/hello")" = hello ] || exit 1

head -c 3000001 /dev/urandom >"$T/in"
timeout 50 "$E/scif_copy" receive 2050 "$T/out" &
retry "$E/scif_copy" send 0 2050 "$T/in" 2>/dev/null || exit 1
wait $! || exit 1
cmp "$T/in" "$T/out" || exit 1

WEFT_NODE=1 timeout 50 "$E/scif_words" serve 2051 &
retry "$E/scif_words" ask 1 2051 >"$T/words" 2>/dev/null || exit 1
wait $! || exit 1
cat "$T/words"
[ "${WEFT_SHARE:-}" = never ] && mapped=0 || mapped=1 # without shared pages a line less
[ "$(grep -c us "$T/words")" = $((3 + mapped)) ] || exit 1

# Two nodes that greet each other; one goes.  Each has its own pid in place of timeout(1)'s.
WEFT_NODE=2 "$E/scif_nodes" 40 >"$T/two" &
two=$!
WEFT_NODE=3 "$E/scif_nodes" 40 >"$T/three" &
three=$!
trap 'kill $two $three 2>/dev/null; rm -rf "$T"' EXIT
retry grep "node 3 is there, pid $three" "$T/two" || exit 1
retry grep "node 2 is there, pid $two" "$T/three" || exit 1
retry grep "node 2 is there, pid $two" "$T/two" || exit 1 # itself
kill $three
retry grep "node 3 is gone" "$T/two"
