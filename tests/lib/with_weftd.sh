#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# with_weftd.sh BUILD PROGRAM ARGS...: runs a test program on the libraries and the weftd of that
# build directory, in a runtime directory of its own, and takes both down afterwards.
BUILD=$(cd "$1" && pwd)
shift
T=$(mktemp -d)
export WEFT_RUNTIME_DIR="$T" WEFT_DAEMON="$BUILD/weftd"
export LD_LIBRARY_PATH="$BUILD/lib"
unset WEFT_FABRIC WEFT_NODE
# UDP port 4791 is one for all: tests that are about it say so, in a network of their own.
export WEFT_WIRE="${WEFT_WIRE:-never}"
trap '"$BUILD/weft" down >/dev/null 2>&1; rm -rf "$T"' EXIT
trap 'exit 1' INT TERM
"$@"
