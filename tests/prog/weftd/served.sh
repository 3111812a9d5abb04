#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# served.sh BUILD PLAIN STATIC RPATH ASAN: of a program that Weft cannot serve, weft run says so and what
# to do, in one line, and runs it all the same.  The program itself is tests/prog/weftd/served.c; the
# compiler may have made no ASAN ("-").
. "$(dirname "$0")/../lib.sh"
PLAIN=$2 STATIC=$3 RPATH=$4 ASAN=$5
WEFT=$BUILD/weft

# runs TEXT LINE PROGRAM...: it ran, and weft said just that line; of no line nothing.
runs() {
	text=$1 line=$2
	shift 2
	rc "$text" 7 "$WEFT" run "$@"
	same "$text: it runs" 'it runs' "$(cat "$T/out")"
	same "$text: what weft says" "$line" "$(cat "$T/err")"
}
NO_STATIC='is linked statically, so that it loads no library of Weft'\''s; link it dynamically, with -libverbs'

runs 'an ordinary program' '' "$PLAIN"
runs 'a static one' "weft: '$STATIC' $NO_STATIC" "$STATIC"
cp "$STATIC" "$T/static"
ok 'found by PATH' env PATH="$T:$PATH" sh -c "'$WEFT' run static 2>&1 | grep -q \"^weft: '$T/static' is linked\""
printf '#!%s\n' "$T/static" >"$T/script"
printf '#!/usr/bin/env %s\n' "$T/static" >"$T/by_env"
chmod +x "$T/script" "$T/by_env"
for script in script by_env; do
	runs "the interpreter of a $script" "weft: '$T/$script' is run by '$T/static', which $NO_STATIC" "$T/$script"
done
runs 'env' '' env A=b "$PLAIN"
runs 'a static one behind env' "weft: '$STATIC' $NO_STATIC" env -u HOME "$STATIC"
runs 'env -i' "weft: 'env' starts its program without the environment that leads it to Weft; put weft behind it: env -i ... weft run PROGRAM" \
	env -i "$PLAIN"
runs 'env -i with what counts' '' env -i LD_LIBRARY_PATH=/ "$PLAIN"

# An RPATH counts where another library is, and only there.
cp "$RPATH" "$T/rpath"
runs 'an RPATH that leads nowhere' '' "$T/rpath"
mkdir "$T/other"
runs 'one to a folder without these libraries' '' "$T/rpath"
: >"$T/other/librdmacm.so.1"
runs 'one to another rdma-core' "weft: '$T/rpath' has an RPATH, which comes before Weft's libraries and leads to another librdmacm.so.1 ($T/other); take the RPATH out: patchelf --remove-rpath, or link without -rpath" \
	"$T/rpath"
ln -sf "$BUILD/lib/librdmacm.so.1" "$T/other/librdmacm.so.1"
runs 'one to Weft'\''s own' '' "$T/rpath"

# Of another machine: what the kernel says of it is its own.
cp "$PLAIN" "$T/foreign"
printf '\363\000' | dd of="$T/foreign" bs=1 seek=18 conv=notrunc 2>/dev/null
"$WEFT" run "$T/foreign" >"$T/out" 2>"$T/err"
ok 'of another machine' grep -q "^weft: '$T/foreign' is a program for riscv64, and Weft's libraries are for .*; compile it for this machine" "$T/err"

# Privileges of a file are what others have.
cp "$PLAIN" "$T/privileged"
if [ "$(id -u)" = 0 ] && chown 65534:65534 "$T/privileged" 2>/dev/null; then
	for right in u+s g+s; do
		chmod 755 "$T/privileged"
		chmod u-s,g-s,$right "$T/privileged"
		"$WEFT" run "$T/privileged" >"$T/out" 2>"$T/err"
		[ $right = u+s ] && word=user || word=group
		if findmnt -no OPTIONS -T "$T" | grep -qw nosuid; then
			same "$right, where that has no effect" '' "$(cat "$T/err")"
		else
			same "$right" "weft: '$T/privileged' has privileges of its file (set-$word-ID), with which it loads no library of Weft's; run a copy of it, which has none (cp)" \
				"$(cat "$T/err")"
		fi
		ok 'where no privilege is to be had' \
			sh -c "setpriv --no-new-privs '$WEFT' run '$T/privileged' 2>&1 | grep -qx 'it runs'"
		same 'nothing is said of it there' '' "$(setpriv --no-new-privs "$WEFT" run "$T/privileged" 2>&1 >/dev/null)"
	done
fi

# A sanitizer wants to be first; where it was put there already, it stays.
if [ "$ASAN" != - ]; then
	unset ASAN_OPTIONS
	runs 'a sanitizer' '' "$ASAN"
	same 'it comes first' 1 "$("$WEFT" run "$ASAN" then env | grep -c 'LD_PRELOAD=[^:]*asan[^:]*:[^:]*libweftpaths.so$')"
fi
finish
