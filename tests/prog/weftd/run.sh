#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# weft run and weft env: environment, exit codes, quoting.
. "$(dirname "$0")/../lib.sh"
export WEFT_AUTOSTART=0
WEFT=$BUILD/weft
LIB=$BUILD/lib
SHIM=$LIB/libweftpaths.so
unset LD_LIBRARY_PATH LD_PRELOAD

rc 'the exit code is the program'\''s' 7 "$WEFT" run -- sh -c 'exit 7'
rc 'without --' 7 "$WEFT" run sh -c 'exit 7'
rc 'no such program' 127 "$WEFT" run -- "$T/none"
ok 'it says so' grep -q "^weft: cannot run '$T/none': No such file" "$T/err"
rc 'a program not in PATH' 127 "$WEFT" run -- weft-no-such-program
: >"$T/plain"
rc 'not executable' 126 "$WEFT" run -- "$T/plain"
rc 'a directory' 126 "$WEFT" run -- "$T"
rc 'no program' 2 "$WEFT" run
rc 'an unknown option' 2 "$WEFT" run --nonsense -- true
rc 'a bad fabric name' 2 "$WEFT" run --fabric ../x -- true
for n in 65536 99999999999 -1 '' mic0 1x; do
	rc "a bad node, $n" 2 "$WEFT" run --node "$n" -- true
	ok 'it says so' grep -q "bad node '$n'; use a number from 0 to 65535" "$T/err"
done
rc '--sdp' 1 "$WEFT" run --sdp -- true
ok 'it says so' grep -q 'not supported yet' "$T/err"
rc 'no command' 2 "$WEFT"
rc 'an unknown command' 2 "$WEFT" nonsense
rc 'a command to come' 1 "$WEFT" top
ok 'it says so' grep -q "^weft: 'top' is not supported yet; see docs/status.md" "$T/err"
rc 'help' 0 "$WEFT" --help
cp "$T/out" "$T/help"
rc 'help as a command' 0 "$WEFT" help
same 'it is the same' '' "$(diff "$T/help" "$T/out")"
rc 'help of a command' 0 "$WEFT" help fault set
ok 'it names the command' grep -q '^Usage: weft fault' "$T/out"
rc 'help of none' 2 "$WEFT" help none
rc 'version' 0 "$WEFT" --version
ok 'version' grep -q '^weft [0-9]' "$T/out"
for c in run env up down status topo doctor crash; do
	rc 'help' 0 "$WEFT" $c --help
	ok 'usage names the command' grep -q "^Usage: weft $c" "$T/out"
done
same 'options of the program are its own' '--fabric x' "$("$WEFT" run echo --fabric x)"

show() { "$WEFT" run "$@" -- sh -c 'echo "$LD_LIBRARY_PATH|$LD_PRELOAD|$WEFT_FABRIC|$WEFT_NODE"'; }
same plain "$LIB|$SHIM||" "$(show)"
same '--no-paths' "$LIB|||" "$(show --no-paths)"
same '--paths wins when last' "$LIB|$SHIM||" "$(show --no-paths --paths)"
same 'fabric and node' "$LIB|$SHIM|f1|2" "$(show --fabric f1 --node 2)"
same 'fabric and node kept' "$LIB|$SHIM|a|b" "$(WEFT_FABRIC=a WEFT_NODE=b show)"
same 'an existing library path is kept behind' "$LIB:/a:/b|$SHIM||" "$(LD_LIBRARY_PATH=/a:/b show)"
same 'an empty one does not mean the current directory' "$LIB|$SHIM||" "$(LD_LIBRARY_PATH='' show)"
# A sanitizer in weft itself comes first there.
same 'run in run' "$LIB|$SHIM||" "$("$WEFT" run "$WEFT" run sh -c 'echo "$LD_LIBRARY_PATH|$LD_PRELOAD||"' |
	sed 's/|lib[a-z]*san\.so\.[0-9]*:/|/')"
first=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | awk '/libdl.so.2 .*=>/ {print $NF; exit}')
if [ -n "$first" ]; then
	same 'an existing preload stays first' "$LIB|$first:$SHIM||" "$(LD_PRELOAD=$first show)"
	same 'blanks separate, too' "$LIB|$first $first:$SHIM||" "$(LD_PRELOAD="$first $first" show)"
fi

# A build tree somewhere else, with a blank in its name.
mkdir -p "$T/a b/lib" "$T/c:d/lib"
cp "$WEFT" "$T/a b/" && cp "$SHIM" "$T/a b/lib/"
rc 'no libibverbs.so.1 there' 1 "$T/a b/weft" run true
ok 'it names the file' grep -q "^weft: $T/a b/lib/libibverbs.so.1: No such file" "$T/err"
rc 'env, too' 1 "$T/a b/weft" env
ln -s "$LIB/libibverbs.so.1" "$LIB/librdmacm.so.1" "$T/a b/lib/"
cp "$WEFT" "$T/c:d/" && cp "$SHIM" "$T/c:d/lib/"
same 'a blank in the path' "$T/a b/lib|libweftpaths.so||" "$(WEFT="$T/a b/weft"; show)"
same 'no complaint of the linker' '' "$("$T/a b/weft" run true 2>&1)"
rc 'a colon in the path' 1 "$T/c:d/weft" run true
ok 'it says so' grep -q 'dynamic linker' "$T/err"

# weft env: whatever the values hold, eval sets them and runs nothing.
hostile="a'b\"c\$(touch $T/pwned)\`touch $T/pwned\`;touch $T/pwned
x \\ *|&"
got=$(
	LD_LIBRARY_PATH=$hostile
	export LD_LIBRARY_PATH
	out=$("$WEFT" env --fabric f --node 3)
	unset LD_LIBRARY_PATH
	eval "$out"
	echo "$LD_LIBRARY_PATH|$WEFT_NODE|$WEFT_FABRIC"
)
same 'hostile values' "$LIB:$hostile|3|f" "$got"
rc 'nothing was run' 1 test -e "$T/pwned"
same 'env sets the same as run' "$(show)" "$(eval "$("$WEFT" env)"; sh -c 'echo "$LD_LIBRARY_PATH|$LD_PRELOAD|$WEFT_FABRIC|$WEFT_NODE"')"
rc 'env with arguments' 2 "$WEFT" env true

# A full disk.
for c in env doctor 'doctor --json'; do
	rc 'a full standard output' 1 sh -c "'$WEFT' $c >/dev/full"
	ok 'it says so' grep -q '^weft: cannot write to standard output' "$T/err"
done

# What doctor says of the runtime directory.
mkdir -m 700 "$T/real" && ln -s real "$T/link"
runtime_dir() { WEFT_RUNTIME_DIR=$1 "$WEFT" doctor 2>/dev/null | grep '^[a-zA-Z]*  *runtime dir '; }
same 'a good one' "ok    runtime dir   $T/real" "$(runtime_dir "$T/real")"
same 'nothing is left in it' '' "$(ls -A "$T/real")"
same 'a link' "FAIL  runtime dir   $T/link is a symbolic link; set WEFT_RUNTIME_DIR to a directory of your own, of mode 700" \
	"$(runtime_dir "$T/link")"
if [ "$(id -u)" != 0 ]; then
	chmod 500 "$T/real"
	same 'a read-only one' FAIL "$(runtime_dir "$T/real" | cut -c1-4)"
fi
finish
