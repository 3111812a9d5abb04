#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# served.sh BUILD PLAIN STATIC RPATH ASAN: of a program that Weft cannot serve, weft run says so and what
# to do, in one line, and runs it all the same; weft doctor says the same, and does not run it.  The program itself is tests/prog/weftd/served.c; the
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
# doctor_says TEXT RESULT LINE PROGRAM...: the check "program", of weft doctor.
doctor_says() {
	text=$1 result=$2 line=$3
	shift 3
	same "$text: what doctor says" "$result  program       $line" \
		"$(WEFT_AUTOSTART=0 "$WEFT" doctor "$@" 2>&1 | tail -n 1)"
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
# What interprets it cannot be run: that is named, not the script.
printf '#!/no/such/interpreter\n' >"$T/no_interpreter"
printf '#!/bin/sh\r\nexit 5\r\n' >"$T/crlf"
printf '#!%s\n' "$T" >"$T/by_folder"
chmod +x "$T/no_interpreter" "$T/crlf" "$T/by_folder"
no_interpreter() {
	rc "$1: exit code" "$2" "$WEFT" run "$T/$1"
	same "$1: what weft says" "weft: '$T/$1' is run by $3" "$(cat "$T/err")"
	doctor_says "$1" FAIL "'$T/$1' is run by $3" "$T/$1"
}
no_interpreter no_interpreter 127 "'/no/such/interpreter', which cannot be run: No such file or directory; correct the first line of the script, or install what it names"
no_interpreter crlf 127 "'/bin/sh\x0d', which cannot be run: No such file or directory; take the carriage returns out of the script (sed -i 's/\r\$//')"
no_interpreter by_folder 126 "'$T', which cannot be run: Permission denied; correct the first line of the script, or install what it names"
chmod -x "$T/crlf"
rc 'a script without leave' 126 "$WEFT" run "$T/crlf"
same 'is told of that' "weft: cannot run '$T/crlf': Permission denied; check its name and mode" "$(cat "$T/err")"
printf '#!%0300d\n' 1 >"$T/long"
chmod +x "$T/long"
rc 'more than the kernel reads is a script of sh' 0 "$WEFT" run "$T/long"
same 'nothing is said of it' '' "$(cat "$T/err")"
loader=$(readelf -lW "$PLAIN" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
runs 'the dynamic linker' '' "$loader" "$PLAIN"
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

# What doctor says of one of each, and of what cannot be run at all.
doctor_says 'an ordinary one' 'ok  ' "'$PLAIN' can be served: nothing in its file keeps it from Weft" "$PLAIN"
doctor_says 'one that is found by PATH, with options' 'ok  ' \
	"'$(command -v env)' can be served: nothing in its file keeps it from Weft" -- env --json
doctor_says 'a static one' FAIL "'$STATIC' $NO_STATIC" "$STATIC" --json
doctor_says 'a script of one' FAIL "'$T/script' is run by '$T/static', which $NO_STATIC" "$T/script"
doctor_says 'none' FAIL "cannot run 'no-such-program': No such file or directory; check its name and PATH" no-such-program
doctor_says 'none at that place' FAIL "cannot run '$T/none': No such file or directory; check its name and PATH" "$T/none"
doctor_says 'a directory' FAIL "cannot run '$T': Permission denied; check its name and mode" "$T"
: >"$T/plain_file"
doctor_says 'a file without leave' FAIL "cannot run '$T/plain_file': Permission denied; check its name and mode" "$T/plain_file"
doctor_says 'a name of others' FAIL "cannot run '\x1b[2J': No such file or directory; check its name and PATH" "$(printf '\033[2J')"
rc 'doctor fails then' 1 env WEFT_AUTOSTART=0 "$WEFT" doctor --json "$STATIC"
ok 'as JSON, too' grep -q '"name": "program",' "$T/out"
ok 'it counts' grep -q '"failed": 1' "$T/out"
rc 'not of one that can be served' 0 env WEFT_AUTOSTART=0 "$WEFT" doctor "$PLAIN"
ok 'which it does not run' [ "$(grep -c 'it runs' "$T/out")" = 0 ]

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

# A sanitizer wants to be first; where it was put there already, it stays.  clang has it in the
# program, where it needs nothing.
if [ "$ASAN" != - ]; then
	unset ASAN_OPTIONS
	runs 'a sanitizer' '' "$ASAN"
fi
if [ "$ASAN" != - ] && ! grep -q 'libasan\.so\.' "$ASAN"; then
	doctor_says 'a sanitizer within' 'ok  ' "'$ASAN' can be served: nothing in its file keeps it from Weft" "$ASAN"
	same 'nothing comes before' 0 "$("$WEFT" run "$ASAN" then env | grep -c 'LD_PRELOAD=.*:')"
elif [ "$ASAN" != - ]; then
	doctor_says 'a sanitizer' 'ok  ' "'$ASAN' can be served; its sanitizer's runtime is preloaded first ($(
		"$WEFT" run "$ASAN" then env | sed -n 's/^LD_PRELOAD=\([^:]*\):.*/\1/p'))" "$ASAN"
	same 'it comes first' 1 "$("$WEFT" run "$ASAN" then env | grep -c 'LD_PRELOAD=[^:]*asan[^:]*:[^:]*libweftpaths.so$')"
fi
# clang has its runtimes within the program, which bears no second one, unless it is told otherwise.
by_clang() { clang "$@" "$(dirname "$0")/served.c" 2>/dev/null; }
if command -v clang >/dev/null; then
	unset UBSAN_OPTIONS
	if by_clang -fsanitize=undefined -o "$T/within"; then
		runs 'a runtime within the program' '' "$T/within"
		doctor_says 'a runtime within the program' 'ok  ' \
			"'$T/within' can be served: nothing in its file keeps it from Weft" "$T/within"
	fi
	if by_clang -fsanitize=undefined -shared-libsan -o "$T/beside"; then
		runs 'one beside it, where only clang finds it' '' "$T/beside"
	fi
fi
finish
