#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# weft up, down, status and doctor; device files while weftd comes and goes.
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft
export WEFT_IDLE_EXIT=60
unset WEFT_AUTOSTART
trap '"$WEFT" down >/dev/null 2>&1; "$WEFT" down -F lab >/dev/null 2>&1; rm -rf "$T"' EXIT
serves() { "$WEFT" status --json 2>/dev/null | grep -q '"device": "weft0"'; }
pid() { "$WEFT" status --json | sed -n 's/^  "pid": \([0-9]*\).*/\1/p'; }
first_line() { head -n 1 "$T/out"; }

rc 'status without weftd' 1 "$WEFT" status
same 'it is one line' 1 "$(wc -l <"$T/err")"
rc 'which starts none' 1 "$WEFT" status --json
rc 'down without weftd' 0 "$WEFT" down
same 'it says so' "no weftd serves fabric 'default'" "$(first_line)"

rc up 0 "$WEFT" up
ok 'weftd answers' serves
same 'up says so' "weftd serves fabric 'default' (pid $(pid))" "$(first_line)"
was=$(pid)
rc 'up again' 0 "$WEFT" up
same 'it says so' "weftd already serves fabric 'default' (pid $was)" "$(first_line)"
rc status 0 "$WEFT" status
ok 'the table has the device' grep -q '^device  *weft0$' "$T/out"
ok 'the table has the GIDs' grep -q '^  [0-9]  *::ffff:127.0.0.1 ' "$T/out"
rc 'another fabric is not up' 1 "$WEFT" status --fabric other
rc 'a bad name' 2 "$WEFT" status --fabric a/b
rc 'state' 0 "$WEFT" run cat /sys/class/infiniband/weft0/ports/1/state
same 'state' '4: ACTIVE' "$(first_line)"
guid=$("$WEFT" run cat /sys/class/infiniband/weft0/node_guid)

rc down 0 "$WEFT" down
same 'down says so' "weftd of fabric 'default' has stopped" "$(first_line)"
rc 'it is gone' 1 "$WEFT" status
i=0
while [ -e "/proc/$was/exe" ] && [ $i -lt 200 ]; do
	sleep 0.05
	i=$((i + 1))
done
rc 'no process' 1 test -e "/proc/$was/exe"

for address in nonsense 0.0.0.0 :: 224.0.0.1 ff02::1; do
	rc "no host has the address $address" 2 "$WEFT" up --address $address
done
rc 'up with an address that is not here' 0 "$WEFT" up --address 192.0.2.1
ok 'it says so' grep -q 'does not have the address 192.0.2.1' "$T/err"
rc 'doctor looks at that address' 0 "$WEFT" doctor
ok 'it says so' grep -q '^warn  udp port *4791 of 192.0.2.1: .*does not have' "$T/out"
rc down 0 "$WEFT" down
rc 'up with one that is' 0 "$WEFT" up --address 127.0.0.1
same 'it says nothing' '' "$(cat "$T/err")"
rc 'doctor looks at that address' 0 "$WEFT" doctor
ok 'it says so' grep -q '^[a-z]*  *udp port *4791 of 127.0.0.1' "$T/out"
rc down 0 "$WEFT" down
address=$(echo "$WEFT_RUNTIME_DIR"/default-*.epoch)
address=${address%.epoch}.address
mkfifo "$address"
rc 'up beside an address that is a FIFO' 0 timeout 60 "$WEFT" up
ok 'all addresses count' sh -c "'$WEFT' status | grep -q '::ffff:127.0.0.1 '"
rc down 0 "$WEFT" down
rm -f "$address"

# Who looks at a device file starts weftd; who is told not to sees what the last one left.
same 'without autostart' "$guid" \
	"$(WEFT_AUTOSTART=0 "$WEFT" run cat /sys/class/infiniband/weft0/node_guid)"
rc 'still none' 1 "$WEFT" status
rc 'ordinary files start none' 0 "$WEFT" run cat /dev/null
rc 'still none' 1 "$WEFT" status
same 'the GUID is stable' "$guid" "$("$WEFT" run cat /sys/class/infiniband/weft0/node_guid)"
ok 'now weftd runs' serves

# The manual page has all names that the status has.
SOURCE=$(dirname "$0")/../../..
names=$(sed -n 's/.*\] = "\([a-z_]*\)",$/\1/p; s/.*set_int(.*"\([a-z_]*\)".*/\1/p' \
	"$SOURCE/daemon/status.c" "$SOURCE/daemon/server.c" "$SOURCE/daemon/wire_status.c" "$SOURCE/daemon/wire_hand.c")
ok 'there are some' [ "$(echo "$names" | wc -l)" -gt 100 ]
for name in $names; do
	ok "weftd.8 explains $name" grep -qw "$name" "$SOURCE/man/weftd.8"
done

rc doctor 0 "$WEFT" doctor
same 'nothing fails' '' "$(grep FAIL "$T/out")"
same 'all checks are there' 21 "$(grep -Ec '^(ok|warn) ' "$T/out")"
rc 'doctor as JSON' 0 "$WEFT" doctor --json
ok 'it counts' grep -q '"failed": 0' "$T/out"
WEFT_PEER_CLIENTS=/none.so rc 'doctor finds a missing peer client' 1 "$WEFT" doctor
ok 'it says so' grep -q '^FAIL  peer clients */none.so: .*No such file' "$T/out"
P=$BUILD/tests/prog/peer
if [ -e "$P/libpeer_plugin_first.so" ]; then # where there is a libibverbs.so.1
	WEFT_PEER_CLIENTS=$P/libpeer_plugin_first.so rc 'doctor loads peer clients' 0 "$WEFT" doctor
	ok 'it says so' grep -q '^ok    peer clients *WEFT_PEER_CLIENTS names 1 library, each loads' "$T/out"
	WEFT_PEER_CLIENTS=$P/libpeer_plugin_first.so:$P/libpeer_plugin_fails.so \
		rc 'doctor finds one that does not start' 1 "$WEFT" doctor
	ok 'it says so' grep -q '^FAIL  peer clients *.*fails.so: its init_module answers -5' "$T/out"
	cp "$P/libpeer_plugin_first.so" "$T/again.so"
	WEFT_PEER_CLIENTS=$P/libpeer_plugin_first.so:$T/again.so \
		rc 'doctor finds two of one name' 1 "$WEFT" doctor
	ok 'it says so' grep -q '^FAIL  peer clients *.*again.so: its init_module answers' "$T/out"
	WEFT_PEER_CLIENTS=$BUILD/lib/libibumad.so.3 rc 'doctor finds one that is no client' 1 "$WEFT" doctor
	ok 'it says so' grep -q '^FAIL  peer clients *.*umad.so.3: it registers no peer client' "$T/out"
fi
WEFT_SHAER=never rc 'doctor knows all variables' 0 "$WEFT" doctor
ok 'it says so' grep -q '^warn  variables *Weft has no variable WEFT_SHAER;' "$T/out"
for wrong in WEFT_AUTOSTART=no WEFT_GPU=off WEFT_IDLE_EXIT=soon WEFT_IDLE_EXIT=-1 WEFT_SHARE=al; do
	rc 'doctor knows their values' 0 env "$wrong" "$WEFT" doctor
	ok "it says so of $wrong" grep -q "^warn  variables *$wrong is no" "$T/out"
done
for wrong in WEFT_LOG=loud WEFT_LOG=info:/none/log WEFT_FAULT=often; do
	rc 'doctor reads them as their readers do' 0 env "$wrong" "$WEFT" doctor
	ok "it says so of $wrong" grep -q "^warn  variables *$wrong" "$T/out"
done
for right in "WEFT_LOG=info:$T/log" WEFT_LOG=debug 'WEFT_FAULT=drop 3%'; do
	rc 'doctor reads them as their readers do' 0 env "$right" "$WEFT" doctor
	ok "it has nothing against $right" grep -q "^ok    variables" "$T/out"
done
# Each variable that some file reads has its line in that table.
named() { grep -rhoE '"WEFT_[A-Z_]+"' --include='*.[ch]' "$@" | sort -u; }
# shellcheck disable=SC2046 # folders without blanks
same 'doctor knows what is read' '' "$(named $(find "$SOURCE" -mindepth 1 -maxdepth 1 -type d ! -name '.*' \
	! -name 'build*' ! -name tests ! -name bench ! -name examples ! -name include) | grep -vxF \
	"$(named "$SOURCE/cli/check_variables.c")")"
WEFT_GPU=0 rc 'doctor knows WEFT_GPU' 0 "$WEFT" doctor
ok 'it says so' grep -q '^warn  gpus *WEFT_GPU=0' "$T/out"
LD_LIBRARY_PATH=$BUILD/tests/fakes rc 'doctor finds the driver of a GPU' 0 "$WEFT" doctor
ok 'it says so' grep -q '^ok    gpus *libcuda.so.1 is there' "$T/out"
chmod 755 "$WEFT_RUNTIME_DIR"
rc 'doctor finds an open directory' 1 "$WEFT" doctor
ok 'it says so' grep -q '^FAIL  runtime dir .* is open to others (mode 755); set WEFT_RUNTIME_DIR to a directory of your own, of mode 700$' "$T/out"
same 'once' 1 "$(grep -c '^FAIL' "$T/out")"
same 'what it is the cause of is not checked' 3 "$(grep -c 'not checked: there is no runtime directory' "$T/out")"
same 'nothing else says a word of it' '' "$(cat "$T/err")"
WEFT_NONSENSE=1 WEFT_WIRE=maybe rc 'doctor finds variables that are wrong' 1 "$WEFT" doctor
ok 'the one' grep -q '^warn  variables .*Weft has no variable WEFT_NONSENSE; see weft(7)' "$T/out"
ok 'and the other' grep -q '^warn  variables .*WEFT_WIRE=maybe is none of auto|always|never; correct or unset it' "$T/out"
WEFT_RUNTIME_DIR=here rc 'doctor finds a relative one' 1 "$WEFT" doctor
ok 'it says so' grep -q '^FAIL  runtime dir *WEFT_RUNTIME_DIR=here is relative; set it to a path that begins with /' "$T/out"
same 'once' 1 "$(grep -c '^FAIL' "$T/out")"
same 'there alone' '' "$(cat "$T/err")"
chmod 700 "$WEFT_RUNTIME_DIR"
WEFT_FABRIC=a/b rc 'doctor finds a bad name' 1 "$WEFT" doctor
ok 'it says so' grep -q '^FAIL  fabric *WEFT_FABRIC=a/b is no name of a fabric; use 1 to 32 letters' "$T/out"
same 'once' 1 "$(grep -c '^FAIL' "$T/out")"
same 'there alone' '' "$(cat "$T/err")"
for node in leaf 65536; do
	WEFT_NODE=$node rc 'doctor finds what is no node' 1 "$WEFT" doctor
	ok 'it says so' grep -q "^FAIL  fabric *WEFT_NODE=$node is neither a number .*; correct or unset it" "$T/out"
	same 'once' 1 "$(grep -c '^FAIL' "$T/out")"
	same 'there alone' '' "$(cat "$T/err")"
	same 'and what is not checked for it' 2 "$(grep -c 'not checked: WEFT_NODE is no node' "$T/out")"
done
WEFT_NODE=7 rc 'where there is no topology it is of SCIF' 0 "$WEFT" doctor
rc 'a topology' 0 "$WEFT" up -F lab ft2:4,4,2
WEFT_FABRIC=lab WEFT_NODE=300 rc 'doctor finds a node that is not there' 1 "$WEFT" doctor
ok 'it says so' grep -q "^FAIL  fabric *WEFT_NODE=300 is no node of 'lab'; .*: weft topo -F lab lists" "$T/out"
same 'once' 1 "$(grep -c '^FAIL' "$T/out")"
same 'there alone' '' "$(cat "$T/err")"
WEFT_FABRIC=lab WEFT_NODE=3 rc 'doctor knows one that is' 0 "$WEFT" doctor
rc down 0 "$WEFT" down -F lab
stopped=$(pid)
kill -STOP "$stopped"
i=0
until grep -q '^State:.T' "/proc/$stopped/status" || [ $i -ge 200 ]; do
	sleep 0.05
	i=$((i + 1))
done
rc 'doctor finds a stopped weftd' 1 "$WEFT" doctor
kill -CONT "$stopped"
same 'it says so once' 1 "$(grep -c '^FAIL  fabric .*stopped' "$T/out")"
same 'and does not take it for another' '' "$(grep "^[a-z]*  *others .*weftd $stopped)" "$T/out")"
same 'and does not ask it again' 2 "$(grep -c 'not checked: weftd does not answer' "$T/out")"
WEFT_DAEMON=/none rc 'doctor finds a bad WEFT_DAEMON' 1 "$WEFT" doctor
ok 'it says so' grep -q '^FAIL  weftd .*WEFT_DAEMON' "$T/out"
rc down 0 "$WEFT" down
WEFT_DAEMON=/none rc 'doctor where no weftd can be started' 1 "$WEFT" doctor
same 'it says so once' 1 "$(grep -c '^FAIL' "$T/out")"
same 'and what is not checked for it' 2 "$(grep -c 'not checked: no weftd runs' "$T/out")"
WEFT_AUTOSTART=0 rc 'doctor where none may be' 0 "$WEFT" doctor
ok 'it says so' grep -q "^warn  fabric .*; run 'weft up'" "$T/out"
same 'and what is not checked for it' 2 "$(grep -c 'not checked: no weftd runs' "$T/out")"
WEFT_DAEMON=/none rc 'up without an executable' 1 "$WEFT" up

# A check that cannot look does not pass.
no_proc='unshare -m'
[ "$(id -u)" = 0 ] || no_proc='unshare -rm'
no_proc="$no_proc sh -c"
hide='mount -t tmpfs none /proc && exec "$0" "$@"'
if $no_proc "$hide" "$WEFT" --version >/dev/null 2>&1; then
	rc 'doctor without /proc' 1 $no_proc "$hide" "$WEFT" doctor
	ok 'it says so' grep -q '^FAIL  weftd .*mount /proc' "$T/out"
	same 'no check passes without a word' 0 "$(grep -Ec '^ok  *[^ ]+( [^ ]+)? *$' "$T/out")"
fi

# Whatever fails, there is one line that says why.
WEFT_FABRIC=a/b rc 'up with a bad name' 1 "$WEFT" up
same 'it says so once' 1 "$(wc -l <"$T/err")"
for files in 4 5 6 7 8; do
	for c in status up; do
		rc 'none runs' 0 "$WEFT" down
		sh -c 'ulimit -Sn "$1" && exec "$2" "$3"' - $files "$WEFT" $c >"$T/out" 2>"$T/err" ||
			same "$c with $files files says why not" 1 "$(wc -l <"$T/err")"
	done
done
rc down 0 "$WEFT" down

# An address that comes and goes, in a network namespace of its own.
new_net='unshare -n'
[ "$(id -u)" = 0 ] || new_net='unshare -rn'
if command -v ip >/dev/null && $new_net true 2>/dev/null; then
	cat >"$T/inside" <<-'END'
		look() { "$1" run sh -c 'grep -h 0a09:0807 /sys/class/infiniband/weft0/ports/1/gids/*'; }
		seen() { i=0; until [ "$(look "$1")" = "$2" ] || [ $i = 400 ]; do i=$((i + 1)); sleep 0.05; done; look "$1"; }
		ip link set lo up
		"$1" up >/dev/null
		echo "before: $(look "$1")"
		ip addr add 10.9.8.7/32 dev lo
		echo "with: $(seen "$1" 0000:0000:0000:0000:0000:ffff:0a09:0807)"
		ip addr del 10.9.8.7/32 dev lo
		echo "after: $(seen "$1" '')"
		"$1" down >/dev/null
	END
	same 'an address that comes and goes' \
		"before:  with: 0000:0000:0000:0000:0000:ffff:0a09:0807 after:  " \
		"$($new_net sh "$T/inside" "$WEFT" | tr '\n' ' ')"
	if [ "$(id -u)" = 0 ]; then
		rc 'up in another network' 0 "$WEFT" up -F far
		WEFT_FABRIC=far rc 'doctor where the fabric is of another network' 1 $new_net "$WEFT" doctor
		ok 'it says so' grep -q '^FAIL  libibverbs .*is that of another network namespace' "$T/out"
		same 'there alone' '' "$(cat "$T/err")"
		rc down 0 "$WEFT" down -F far
	fi
else
	echo 'not checked: a changing address (no network namespace to be had)'
fi
# Names of others do nothing to a terminal.
rc "a command that is none" 2 "$BUILD/weft" "$(printf 'x\nweft: y\033[2J')"
same "it is told of in one line" "weft: unknown command 'x\x0aweft: y\x1b[2J'; try 'weft --help'" \
	"$(cat "$T/err")"
finish
