#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# weft peercheck as a command: what it answers to whom, and with which exit code.
# usage: peercheck_command.sh BUILD SOURCES
sources=$(cd "$2" && pwd)
. "$(dirname "$0")/../prog/lib.sh"

weft=$BUILD/weft
# shellcheck disable=SC2046
cc -O1 $("$weft" peercheck --cflags D) -o "$T/nv.so" "$sources/nv.c" || exit 1
echo 'int x;' >"$T/none.c"
cc -shared -fPIC -o "$T/none.so" "$T/none.c" || exit 1

rc "no client" 2 "$weft" peercheck
rc "a client that is not there" 2 "$weft" peercheck "$T/gone.so"
ok "says why" grep -q 'cannot open .*gone.so: No such file' "$T/err"
rc "no client" 2 "$weft" peercheck "$T/none.so"
ok "says so" grep -q 'cannot check .*: it registers no peer client' "$T/err"
echo '__attribute__((constructor)) static void begin(void) { *(volatile int *)0 = 1; }' >"$T/crash.c"
cc -shared -fPIC -o "$T/crash.so" "$T/crash.c" || exit 1
rc "one that crashes, of no device" 2 "$weft" peercheck "$T/crash.so"
ok "says so" grep -q 'cannot check .*: it ends by SIGSEGV when it is loaded' "$T/err"
cp "$BUILD/tests/prog/peer/libpeer_plugin_first.so" "$T/first.so" || exit 1
rc "no client's device" 2 "$weft" peercheck "$T/first.so"
ok "says what to do" grep -q -- --device "$T/err"
rc "a device that is not there" 2 "$weft" peercheck --device "$T/none.so" "$T/nv.so"
ok "says why" grep -q 'no device' "$T/err"
rc "no library" 2 "$weft" peercheck --device nvidia "$T/none.c"
rc "a source is no client" 2 "$weft" peercheck "$T/none.c"
ok "says why" grep -q 'no shared library: its first bytes' "$T/err"
rc "nor is a folder" 2 "$weft" peercheck "$T"
ok "says why" grep -q 'no shared library: Is a directory' "$T/err"
mkfifo "$T/fifo"
rc "nor a pipe that nobody writes" 2 timeout 20 "$weft" peercheck "$T/fifo"
ok "says why" grep -q 'no shared library: it is a pipe' "$T/err"
rc "a wrong generation" 2 "$weft" peercheck --generation F "$T/nv.so"
rc "an unknown scenario" 2 "$weft" peercheck --only D:nothing "$T/nv.so"
ok "says where they are" grep -q -- --list "$T/err"
rc "two scenarios" 2 "$weft" peercheck --only D:load --only D:region.whole "$T/nv.so"
rc "no jobs" 2 "$weft" peercheck --jobs 0 "$T/nv.so"

# What ends a process, or never returns to it, when it is loaded.
loads()
{
	printf '%s\n' '#include <unistd.h>' \
		"__attribute__((constructor)) static void begin(void) { $2; }" >"$T/loads.c"
	# shellcheck disable=SC2046
	cc $("$weft" peercheck --cflags D) -o "$T/loads.so" "$T/loads.c" || exit 1
	rc "a library that $1" 2 "$weft" peercheck --device nvidia "$T/loads.so"
	ok "says so" grep -q "cannot check .*: a process that loads it $3" "$T/err"
}
loads crashes '*(volatile int *)0 = 1' 'ended by SIGSEGV'
loads exits '_exit(3)' 'ended itself, with exit code 3'
loads 'never returns' 'for (;;) pause()' 'hangs: 2 s without a call'

rc "the list" 0 "$weft" peercheck --list "$T/nv.so"
ok "has scenarios" grep -q '^D:take.live ' "$T/out"
ok "tells the point" grep -q '^D:point.other.[0-9]* .*: after nvidia_p2p_dma_map_pages' "$T/out"
rc "one scenario" 0 "$weft" peercheck --only D:region.whole "$T/nv.so"
export WEFT_KSHIM_BAR_MIB=0
rc "a GPU of which nothing can be pinned" 1 "$weft" peercheck --only D:region.whole "$T/nv.so"
ok "says so" grep -q 'region.whole: acquire does not claim memory of its device' "$T/out"
unset WEFT_KSHIM_BAR_MIB
# Pages for good, and flags that there are not.
flags()
{
	# shellcheck disable=SC2046
	cc -O1 "-D$1=2" $("$weft" peercheck --cflags E) -o "$T/flags.so" "$sources/nv_keep.c" || exit 1
	rc "flags, $1" 1 "$weft" peercheck --only E:region.whole "$T/flags.so"
	ok "says so" grep -q "region.whole: $2" "$T/out"
}
flags PIN_FLAGS 'acquire does not claim memory of its device'
flags UNPIN_FLAGS 'after release, 2 pins or mappings of the device are left'
rc "of another generation" 0 "$weft" peercheck --generation A --only A:take.live "$T/nv.so"

# shellcheck disable=SC2046
cc -O1 $("$weft" peercheck --cflags E) -o "$T/faulty.so" "$sources/faulty.c" || exit 1
export WEFT_PARAM_fault
# fault NAME: that one from now on, by its place in the list.
fault()
{
	WEFT_PARAM_fault=$(sed -n '/^enum fault {/,/^}/p' "$sources/faulty.c" | grep -n "^	$1," | cut -d : -f 1)
	WEFT_PARAM_fault=$((WEFT_PARAM_fault - 2))
}
fault P6_TABLE
rc "a faulty client" 1 "$weft" peercheck --quick "$T/faulty.so"
ok "names the rule" grep -q '^P6  *FAIL' "$T/out"
ok "looks at everything" test "$(grep -c '^note' "$T/out")" = 0
ok "shows the calls" grep -q 'get_pages(.*NULL' "$T/out"
ok "tells how to repeat it" grep -q 'repeat: weft peercheck .*--only E:' "$T/out"
ok "shows other generations" grep -q 'generations: A works, .* E (its own) breaks P6' "$T/out"
fault P3_TOP
rc "one that claims what is not its own" 1 "$weft" peercheck --quick "$T/faulty.so"
ok "names the rule" grep -q '^P3  *FAIL' "$T/out"
ok "is not asked for more" test "$(grep -c '^P1[3-7] .*not run.*; --keep-going' "$T/out")" = 5
ok "but for races" test "$(grep -c '^P\(18\|19\|21\) .*pass' "$T/out")" = 3
rc "to the end" 1 "$weft" peercheck --quick --keep-going "$T/faulty.so"
ok "is asked for all" test "$(grep 'not run' "$T/out" | cut -d ' ' -f 1 | tr '\n' ' ')" = "P4 P20 "
ok "with nothing more to try" test "$(grep -c -- --keep-going "$T/out")" = 0
ok "and breaks nothing more" test "$(grep -c '^P.*FAIL' "$T/out")" = 1
fault P5_READING
rc "one that can only be read by writing" 0 "$weft" peercheck --quick "$T/faulty.so"
ok "shows the generation that asks for less" grep -q '^generations: A breaks P5, B works' "$T/out"
fault P16_TWICE
rc "one that races differently" 1 "$weft" peercheck --quick "$T/faulty.so"
ok "names what it breaks first" grep -q '^P16  *FAIL' "$T/out"
ok "tells what may follow" grep -q '^      it may follow from P16, above' "$T/out"
for name in P2_AGAIN P2_UNKNOWN; do
	fault $name
	rc "one that unregisters what is not registered" 1 "$weft" peercheck --only E:load "$T/faulty.so"
	ok "says so" grep -q '^P2, .*: it unregisters in vain: its handle is no client' "$T/out"
done
unset WEFT_PARAM_fault

# A program's own client, without the shim, and its device.
cc -O1 -shared -fPIC -I"$sources/../../include" -o "$T/own.so" "$sources/own.c" || exit 1
rc "a client with its own device" 0 "$weft" peercheck "$T/own.so"
ok "every rule that it can break is looked at" test "$(grep -c 'not run' "$T/out")" = 1
ok "names it" grep -q 'own_sample 1.0' "$T/out"
ok "says what is not looked at" grep -q '^note: without libweftkshim its memory and' "$T/out"
rc "its device, by its path" 0 "$weft" peercheck --quick --device "$T/own.so" "$T/own.so"
rc "its device, by its name" 0 "$weft" peercheck --only W:load --device own "$T/own.so"
rc "no device of that name" 2 "$weft" peercheck --device bogus "$T/own.so"
ok "says so" grep -q 'there is no device bogus' "$T/err"
rc "nor of that path" 2 "$weft" peercheck --device "$T/gone.so" "$T/own.so"
ok "says why" grep -q 'there is no device .*gone.so: .*No such file' "$T/err"

# Such a client that does what no module of a kernel does.
unruly()
{
	cc -O1 -shared -fPIC -I"$sources/../../include" "-D$1" -o "$T/unruly.so" "$sources/unruly.c" ||
		exit 1
}
unruly FORKS
rc "a client that forks in a function" 1 timeout 60 "$weft" peercheck --quick "$T/unruly.so"
ok "says so" grep -q '^P22, .*: it forks in acquire' "$T/out"
ok "and nothing else" test "$(grep -c '^P.*FAIL' "$T/out")" = 1
ok "and none of its processes is left" test -z "$(grep -l "$T/[u]nruly.so" /proc/[0-9]*/cmdline 2>/dev/null)"
unruly DOES
marked() { grep -lz "^UNRULY_FILE=$T/" /proc/[0-9]*/environ 2>/dev/null; }
gone() {
	for _ in $(seq 200); do
		test -z "$(marked)" && return
		sleep 0.1
	done
	false
}
export UNRULY_DOES UNRULY_IN
for UNRULY_DOES in daemon vfork system; do
	for UNRULY_IN in 'a constructor' init_module acquire get_pages dma_map cleanup_module; do
		case $UNRULY_IN in *_module | *constructor) only=W:load ;; *) only=W:region.whole ;; esac
		rc "$UNRULY_DOES in $UNRULY_IN" 1 env UNRULY_FILE="$T/none" \
			"$weft" peercheck --only $only "$T/unruly.so"
		ok "is a finding" grep -q "^P22, .*: it forks in $UNRULY_IN" "$T/out"
		ok "leaves no process" test -z "$(marked)"
	done
done
UNRULY_IN=acquire
while read -r UNRULY_DOES says; do
	rc "a client whose parent it ${UNRULY_DOES}s" 1 env UNRULY_FILE="$T/none" \
		timeout 60 "$weft" peercheck --only W:region.whole "$T/unruly.so"
	ok "is a finding" grep -q "^P22, .*: it $says" "$T/out"
	ok "leaves no process" test -z "$(marked)"
done <<END
stop stops the process that waits for its own
kill forks in acquire
END
UNRULY_DOES=system
UNRULY_IN='get_pages cleanup_module'
rc "two breaches" 1 "$weft" peercheck --quick "$T/unruly.so"
ok "are told" test "$(grep -c '^P22, .* forks in \(get_pages\|cleanup_module\)$' "$T/out")" = 2
ok "none of which follows" test "$(sed '/W:storm/,$d' "$T/out" | grep -c 'may follow')" = 0
UNRULY_IN=init_module
rc "a breach of races, too" 1 "$weft" peercheck --quick "$T/unruly.so"
tried=$("$weft" peercheck --quick --list "$T/unruly.so" | grep -c '^W:\(load\|acquire\|region\|point\|threads\|storm\)')
ok "is seen in all of them" grep -q "seen in $((tried - 1)) further scenarios" "$T/out"
UNRULY_DOES=hang
tried=$("$weft" peercheck --list "$T/unruly.so" | grep -c '^W:point')
rc "a client of which races hang, too" 1 "$weft" peercheck --jobs 4 "$T/unruly.so"
more=$(sed -n 's/^ *seen in \([0-9]*\) further scenarios$/\1/p' "$T/out")
ok "is asked for few of them" test "$more" -lt "$tried"
UNRULY_IN=acquire
UNRULY_DOES='wait'
for sig in INT TERM HUP KILL; do
	env --default-signal=INT UNRULY_FILE="$T/$sig" "$weft" peercheck "$T/unruly.so" >"$T/out" 2>&1 &
	while ! test -e "$T/$sig"; do sleep 0.02; done
	kill -s $sig $!
	wait $!
	same "ends by SIG$sig" $sig "$(kill -l $?)"
	test $sig = KILL || ok "with all its processes" test -z "$(marked)"
	ok "none of its processes stays" gone
done
unset UNRULY_DOES UNRULY_IN
cat >"$T/leaves.c" <<END
#include <unistd.h>
__attribute__((constructor)) static void begin(void)
{
	if (!fork()) {
		setsid();
		execlp("sleep", "sleep", "300", (char *)0);
	}
}
END
cc -shared -fPIC -o "$T/leaves.so" "$T/leaves.c" || exit 1
rc "a library of no device" 2 env UNRULY_FILE="$T/none" "$weft" peercheck "$T/leaves.so"
ok "has no process left either" test -z "$(marked)"
unruly GOES
rc "a client whose structure goes once it has registered" 0 "$weft" peercheck "$T/unruly.so"
rc "which a kernel's core does not bear" 1 "$weft" peercheck --quick -g B "$T/unruly.so"
ok "says so" grep -q '^P1, .*: its structure is gone' "$T/out"

# Devices that end the process themselves: that is not held against the client.
device()
{
	printf '%s\n' '#include <stdlib.h>' '#include <weft/peercheck.h>' \
		'static int get(size_t n, uint64_t *addr) { (void)n; (void)addr; abort(); }' \
		"__attribute__((visibility(\"default\"))) const struct weft_peer_device weft_peer_device = {" \
		'.size = sizeof weft_peer_device, .name = "crashes", .alloc = get};' \
		"__attribute__((constructor)) static void begin(void) { $1 }" >"$T/device.c"
	cc -shared -fPIC -I"$sources/../../include" -o "$T/device.so" "$T/device.c" || exit 1
}
device ''
rc "a device that crashes" 2 "$weft" peercheck --device "$T/device.so" "$T/own.so"
ok "says so" grep -q 'cannot check .*: its device ends the process by SIGABRT' "$T/err"
device '*(volatile int *)0 = 1;'
rc "a device that crashes when it is loaded" 2 "$weft" peercheck --device "$T/device.so" "$T/own.so"
ok "says so" grep -q 'a process that loads .*device.so ended by SIGSEGV' "$T/err"
finish
