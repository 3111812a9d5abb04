#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# set_user_id.sh BUILD PROGRAM: of what a user says by variables, a set-user-ID program that runs on
# Weft heeds nothing, nor does the weftd that it starts.  In a mount namespace of its own, with a
# runtime directory of root's own over the usual one.
BUILD=$1
PROGRAM=$2

skip() {
	echo "$1"
	exit 77
}
fail() {
	echo "FAIL: $1"
	exit 1
}

[ "$(id -u)" = 0 ] || skip "needs root, to make a set-user-ID program"
if [ -z "$IN_NAMESPACE" ]; then
	unshare -m --propagation private true 2>/dev/null || skip "no mount namespaces here"
	export IN_NAMESPACE=1
	exec unshare -m --propagation private "$0" "$@"
fi

OURS=/tmp/weft-$(awk '$1 == 0 { print $2 }' /proc/self/uid_map)
[ -d $OURS ] || MADE=$OURS
mkdir -p $OURS
mount -t tmpfs -o mode=0700 weft-test $OURS || skip "cannot mount a tmpfs"
D=$(mktemp -d)
cleanup() {
	WEFT_RUNTIME_DIR=$OURS "$BUILD/weft" down >/dev/null 2>&1
	umount $OURS "$D"
	[ -z "$MADE" ] || rmdir "$MADE"
	rm -rf "$D"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

mount -t tmpfs -o mode=0755,suid weft-test "$D" || skip "cannot mount a tmpfs"
cp "$PROGRAM" "$D/program" && chmod 4755 "$D/program"
printf '#!/bin/sh\ntouch %s/open/started\n' "$D" >"$D/daemon"
chmod 755 "$D/daemon"
mkdir -m 1777 "$D/open"
mkdir -m 700 "$D/theirs"
chown 65534:65534 "$D/theirs"
for file in log image journal; do
	echo "root's" >"$D/$file"
	chmod 600 "$D/$file"
done
grep -q . "$D/log" || fail "no file to protect"

# Runs the program as another user who wants to harm us.
attack() {
	timeout -k 1 30 setpriv --reuid 65534 --regid 65534 --clear-groups env -i \
		ASAN_OPTIONS=detect_leaks=0 \
		WEFT_LOG="debug:$D/log" WEFT_FABRIC="$(printf 'x\nroot::0:0::/:/bin/sh\n\033[2J')" \
		WEFT_DAEMON="$D/daemon" WEFT_RUNTIME_DIR="$D/theirs" XDG_RUNTIME_DIR="$D/theirs" \
		WEFT_CRASH="$D/journal" WEFT_CRASH_REGIONS=all SYSFS_PATH="$D/theirs" \
		WEFT_NODE=none WEFT_AUTOSTART=0 WEFT_IDLE_EXIT=soon WEFT_SPIN_US=soon WEFT_SHARE=all \
		WEFT_MOVER=none WEFT_FAULT=all WEFT_GPU=0 WEFT_PEER_CLIENTS="$D/theirs/client.so" \
		"$D/program" "$@" >"$D/out" 2>"$D/err"
	rc=$?
}

for how in "" root; do
	attack $how
	[ $rc != 2 ] || skip "no set-user-ID programs here"
	for file in log image journal; do
		[ "$(cat "$D/$file")" = "root's" ] || fail "$file was written to: $(cat "$D/$file")"
	done
	[ $rc = 0 ] || fail "the program ended with $rc: $(cat "$D/out" "$D/err")"
	[ ! -s "$D/err" ] || fail "a variable was heeded: $(cat "$D/err")"
	[ -z "$(ls "$D/open" "$D/theirs" | grep -v :)" ] || fail "something was made: $(ls "$D"/*)"
	pid=$(WEFT_RUNTIME_DIR=$OURS "$BUILD/weft" status --json | sed -n 's/^ *"pid": *\([0-9]*\).*/\1/p' |
		head -n 1)
	[ -n "$pid" ] || fail "no weftd in $OURS"
	[ "$(tr '\t' ' ' <"/proc/$pid/status" | grep '^Uid:')" = "Uid: 0 0 0 0" ] ||
		fail "weftd is not root's alone: $(grep '^Uid' "/proc/$pid/status")"
	[ -z "$(tr -d '\0' <"/proc/$pid/environ")" ] || fail "weftd has an environment"
	WEFT_RUNTIME_DIR=$OURS "$BUILD/weft" down >/dev/null || fail "weft down"
done
echo "nothing was heeded"
