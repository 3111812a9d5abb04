# SPDX-License-Identifier: BSD-3-Clause
# For test scripts: a runtime directory of their own, and counting what fails.
# They are given the build directory as $1.
BUILD=$(cd "$1" && pwd)
T=$(mktemp -d)
export WEFT_RUNTIME_DIR="$T/run"
unset WEFT_FABRIC WEFT_NODE WEFT_DAEMON WEFT_LOG
# With AddressSanitizer: the shim comes before its runtime, which does not matter here.
export ASAN_OPTIONS="verify_asan_link_order=0:$ASAN_OPTIONS"
# UDP port 4791 is one for all: tests that are about it say so, in a network of their own.
export WEFT_WIRE="${WEFT_WIRE:-never}"
mkdir -m 700 "$WEFT_RUNTIME_DIR"
trap 'rm -rf "$T"' EXIT
FAILS=0
SEEN=0

# ok TEXT COMMAND...: the command must succeed.
ok() {
	text=$1
	shift
	SEEN=$((SEEN + 1))
	if ! "$@"; then
		echo "FAIL: $text: $*"
		FAILS=$((FAILS + 1))
	fi
}

# same TEXT WANTED GOT
same() {
	SEEN=$((SEEN + 1))
	if [ "$2" != "$3" ]; then
		printf 'FAIL: %s: wanted "%s", got "%s"\n' "$1" "$2" "$3"
		FAILS=$((FAILS + 1))
	fi
}

# rc TEXT CODE COMMAND...: the command must end with that exit code.
rc() {
	text=$1
	want=$2
	shift 2
	"$@" >"$T/out" 2>"$T/err" </dev/null
	same "$text: exit code of $*" "$want" $?
}

finish() {
	echo "$SEEN checks, $FAILS failed"
	[ "$FAILS" = 0 ]
	exit
}
