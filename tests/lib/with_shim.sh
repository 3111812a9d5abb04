#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# with_shim.sh BUILD PROGRAM ARGS...: as with_weftd.sh, with the path shim preloaded.
# With AddressSanitizer: the shim comes before its runtime, which does not matter here.
export ASAN_OPTIONS="verify_asan_link_order=0:$ASAN_OPTIONS"
BUILD=$1
shift
exec "$(dirname "$0")/with_weftd.sh" "$BUILD" "$BUILD/weft" run -- "$@"
