#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fabrics with a topology: starting one, its nodes, commands while it runs, restarts.
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft
R=$WEFT_RUNTIME_DIR
unset WEFT_AUTOSTART
export WEFT_IDLE_EXIT=1
trap 'for f in lab two; do "$WEFT" down -F $f; done >/dev/null 2>&1; rm -rf "$T"' EXIT
err() { cat "$T/err"; }
pid_of() { sed -n 's/.*(pid \([0-9]*\))$/\1/p' "$T/out"; }
# Ports of the running fabric $1 that have a link, and those of them that are ACTIVE.
count() { "$WEFT" topo -F "$1" --json | grep -A1 "\"state\": \"$2\"" | grep -c '"link": true'; }
linked() { "$WEFT" topo -F "$1" --json | grep -c '"link": true'; }
row() { "$WEFT" topo -F lab | grep " $1 "; }
has() { row "$1" | grep -q "$2"; }
# until_ok TEXT COMMAND...: it has to succeed in 10 s.
until_ok() {
	text=$1
	shift
	i=0
	until "$@" 2>/dev/null || [ $i = 500 ]; do i=$((i + 1)); sleep 0.02; done
	ok "$text" [ $i -lt 500 ]
}

# ---- bad input starts nothing ----
printf 'Hca 1 "a"\n[1] "b"[1]\n' >"$T/bad"
rc 'a bad netlist' 1 "$WEFT" up -F lab "$T/bad"
same 'file, line, reason' "weft: $T/bad:2: there is no node \"b\"" "$(err)"
rc 'a bad SPEC' 1 "$WEFT" up -F lab ft3:5
printf 'Hca 1 "a"\n\nHca 1 "b"\n\ndo Unlink "c"[1]\n' >"$T/bad_do"
rc 'a bad command in it' 1 "$WEFT" up -F lab "$T/bad_do"
ok 'which is named' grep -q 'do Unlink "c"\[1\]' "$T/err"
rc 'nothing runs' 1 "$WEFT" topo -F lab
ok 'and that is said' grep -q "no weftd serves fabric 'lab'" "$T/err"
ok 'no topology is left' test ! -e "$R/lab.topo"
rc '--sm alone' 2 "$WEFT" up -F lab --sm off
rc 'two topologies' 2 "$WEFT" up -F lab ib:1 ib:2

# ---- each generator, and a netlist: ACTIVE at once ----
cat >"$T/net" <<'END'
Switch 4 "leaf" # "the corner"
[1] "a"[1]
[2] "a"[2]
[3] "b"[1]

Hca 2 "a" # "node a"
[1] "leaf"[1]
[2] "leaf"[2]

Hca 1 "b"
[1] "leaf"[3]
END
for what in ib:3 ft2:4,2,2 ft3:4 torus:3x2x1,1 dragonfly:1,2,1 "$T/net"; do
	rc "up $what" 0 "$WEFT" up -F two "$what"
	same "all links of $what are ACTIVE" "$(linked two)" "$(count two ACTIVE)"
	ok 'and there are some' test "$(linked two)" -gt 0
	rc 'down' 0 "$WEFT" down -F two
done
ok 'whose topology is gone with it' test ! -e "$R/two.topo"
rc 'one that is killed' 0 "$WEFT" up -F two ib:2
kill -9 "$(pid_of)"
rc 'and then down' 0 "$WEFT" down -F two
ok 'has left no topology' test ! -e "$R/two.topo" -a ! -e "$R/two.lids"
: >"$R/two.topo"
rc 'an empty topology' 1 "$WEFT" topo -F two
ok 'is not taken for another error' grep -q 'two.topo: Invalid argument' "$T/err"
rc 'down' 0 "$WEFT" down -F two
mkfifo "$R/two.topo"
rc 'a topology that is a FIFO' 1 timeout 60 "$WEFT" topo -F two
ok 'is not waited for' grep -q 'two.topo: Invalid argument' "$T/err"
rc 'down' 0 "$WEFT" down -F two
mkfifo "$R/two.topo.new" "$R/two.lids" "$R/two.lids.new"
rc 'FIFOs where files will be' 0 timeout 60 "$WEFT" up -F two ib:2
rc 'down' 0 "$WEFT" down -F two

# ---- two at a time: one starts it, with its own topology; the other says that ----
for round in 1 2 3; do
	"$WEFT" up -F two ib:2 >/dev/null 2>"$T/err2" &
	"$WEFT" up -F two ib:3 >/dev/null 2>"$T/err3"
	THREE=$?
	wait $!
	same 'one of two starts it' 1 $(($? + THREE))
	same 'with its own topology' $((THREE ? 2 : 3)) "$("$WEFT" topo -F two | grep -c adapter.*ACTIVE)"
	ok 'the other says why not' grep -q "another 'weft up' is just starting\|serves fabric 'two' already" \
		"$T/err$((THREE ? 3 : 2))"
	rc 'down' 0 "$WEFT" down -F two
done

# ---- nodes ----
rc 'a fabric' 0 "$WEFT" up -F lab "$T/net"
PID=$(pid_of)
rc 'not twice' 1 "$WEFT" up -F lab ib:2
ok 'that is said' grep -q "weftd serves fabric 'lab' already" "$T/err"
rc 'another one beside it' 0 "$WEFT" up -F two --sm off ib:2
same 'which nobody brings up' 0 "$(count two ACTIVE)"
same 'although it has links' 4 "$(linked two)"
rc 'its table' 0 "$WEFT" topo -F lab
ok 'has LIDs and states' grep -q '0  adapter  a     node a .* 1,2  ACTIVE,ACTIVE ' "$T/out"
for form in --net --dot --svg; do
	rc "it as $form" 0 "$WEFT" topo -F lab $form
	ok 'is not empty' test -s "$T/out"
done
rc 'no such node' 1 "$WEFT" run -F lab --node Leaf1 -- true
ok 'names that are near' grep -q "no node 'Leaf1'; near it are 'leaf'" "$T/err"
for node in a 'node a' 0x100000 0; do
	same "a node as '$node'" 0 "$("$WEFT" run -F lab --node "$node" -- sh -c 'echo "$WEFT_NODE"')"
done
same 'a switch is one' '2: switch' "$("$WEFT" run -F lab --node leaf -- \
	cat /sys/class/infiniband/weft0/node_type)"
same 'with port 0' 0 "$("$WEFT" run -F lab --node leaf -- ls /sys/class/infiniband/weft0/ports)"
ok 'and no verbs device' "$WEFT" run -F lab --node leaf -- \
	sh -c 'test ! -e /sys/class/infiniband_verbs/uverbs0'
same 'two ports' '1 2' "$("$WEFT" run -F lab --node a -- \
	ls /sys/class/infiniband/weft0/ports | xargs)"
ok 'nobody was on it yet' test ! -e "$R/lab.tree.1"
same 'a node by WEFT_NODE alone' 0x3 \
	"$(WEFT_NODE=1 "$WEFT" run -F lab -- cat /sys/class/infiniband/weft0/ports/1/lid)"
same 'a LID' 0x3 "$("$WEFT" run -F lab --node b -- cat /sys/class/infiniband/weft0/ports/1/lid)"
same 'a description' b "$("$WEFT" run -F lab --node b -- cat /sys/class/infiniband/weft0/node_desc)"
rc 'without a topology nodes are numbers' 2 "$WEFT" run -F none --node a -- true

rc 'a QP there reaches nobody' 0 "$WEFT" run -F lab --node a -- "$BUILD/tests/prog/subnet/subnet_qp"
ok 'the log says so' grep -q 'between the nodes of a simulated subnet is not supported yet' "$T/err"
for number in 9 b; do
	rc "WEFT_NODE=$number has no files" 2 env WEFT_NODE=$number "$WEFT" run -F lab -- \
		ls /sys/class/infiniband_mad/umad0
	same 'one line says so' 1 "$(grep -c "fabric \"lab\" has no node.* correct or unset WEFT_NODE" "$T/err")"
	test $number = 9 || ok 'and where names are' grep -q 'names are for weft run --node' "$T/err"
	rc 'nor a device' 1 env WEFT_NODE=$number "$WEFT" run -F lab -- "$BUILD/tests/prog/subnet/subnet_qp"
	same 'one line says so' 1 "$(grep -c 'correct or unset WEFT_NODE' "$T/err")"
done
if command -v ibv_devinfo >/dev/null; then
	rc 'ibv_devinfo' 0 "$WEFT" run -F lab --node a -- ibv_devinfo
	same 'two InfiniBand ports' 2 "$(grep -c 'link_layer:.*InfiniBand' "$T/out")"
	same 'with their LIDs' '1 2' "$(sed -n 's/.*port_lid:[^0-9]*//p' "$T/out" | xargs)"
	same 'and the LID of the subnet manager' '4 4' "$(sed -n 's/.*sm_lid:[^0-9]*//p' "$T/out" | xargs)"
	rc 'ibv_devinfo -v' 0 "$WEFT" run -F lab --node b -- ibv_devinfo -v
	same 'eight lanes, by VLCap of PortInfo' '8 (4)' "$(sed -n 's/.*max_vl_num:[^0-9]*//p' "$T/out")"
	rc 'of a switch' 255 "$WEFT" run -F lab --node leaf -- ibv_devinfo
	ok 'it finds none' grep -q 'No IB devices found' "$T/err"
fi

# ---- umad files by system calls alone: as on weft0, but for what InfiniBand has ----
rc 'umad_raw' 0 "$WEFT" run -F lab --node b -- "$BUILD/tests/prog/umad/umad_raw"
sed -i 's/, LID 3,/, LID 0,/' "$T/out"
same 'what it prints else' "$(printf '%s\n' 'QP 0 of class 0x0a: EINVAL' 'QP 0 of class 1: 0' \
	'methods of a closed file: 1' 'without GRH: 320' 'TID 00001005' 'TID 00001009, 0000100a')" \
	"$(diff "$(dirname "$0")/../umad/umad_raw.expected" "$T/out" | sed -n 's/^> //p')"

# ---- status ----
mkfifo "$T/hold"
until_ok 'the subnet manager is at work' sh -c "'$WEFT' status -F lab | grep -q '^subnet .*sm works,'"
rc 'its status' 0 "$WEFT" status -F lab
same 'has the subnet' 'subnet sm works, adapters 2, switches 1, nodes_in_use 3, links 3' \
	"$(sed -n 's/^subnet  */subnet /p' "$T/out")"
ok 'and what was dropped' grep -q '^subnet_drops ' "$T/out"
"$WEFT" run -F lab --node b -- sh -c 'exec 3</dev/infiniband/issm0; : >"$0"; read -r line' "$T/is_sm" <"$T/hold" &
exec 4>"$T/hold"
until_ok 'somebody is the subnet manager' test -e "$T/is_sm"
ok 'and it gives way' sh -c "'$WEFT' status -F lab | grep -q '^subnet .*sm gives way,'"
exec 4>&-
until_ok 'it comes back' sh -c "'$WEFT' status -F lab | grep -q '^subnet .*sm works,'"
rc 'status of a fabric without' 0 "$WEFT" status -F two --json
same 'sm=off' '"off"' "$(sed -n 's/^ *"sm": \(.*\),$/\1/p' "$T/out")"

# ---- commands ----
rc 'a cable is pulled' 0 "$WEFT" topo -F lab --do 'Unlink "b"[1]'
ok 'and seen' has b DOWN
until_ok "in its files" "$WEFT" run -F lab --node b -- grep -q DOWN /sys/class/infiniband/weft0/ports/1/state
rc 'from standard input' 0 sh -c "printf 'Relink \"b\"\n' | '$WEFT' topo -F lab --do -"
rc 'the second line is refused' 1 sh -c "printf '# x\nUnlink \"n\"\nStart\n' | '$WEFT' topo -F lab --do -"
same 'it is named' 'weft: line 2: there is no node "n"' "$(err)"
until_ok "and it is up again" has b ACTIVE
rc 'two commands' 0 "$WEFT" topo -F lab --do 'Unlink "a"[1]' --do 'dump "a"'
ok 'and what one prints' grep -q '"a"' "$T/out"
rc 'one that is refused' 1 "$WEFT" topo -F lab --do 'Unlink "a"[1]'
same 'in one line' 1 "$(wc -l <"$T/err")"
rc 'one with a file' 2 "$WEFT" topo --do 'Start' "$T/net"
rc 'in a fabric without topology' 1 "$WEFT" topo -F none --do Start

rc 'the way between two nodes' 0 "$WEFT" topo -F lab --route 'node a' b
same 'and back' '[2] -> "leaf"[2]
[3] -> "b"[1]
[1] -> "leaf"[3]
[2] -> "a"[2]' "$(grep '^\[' "$T/out")"
rc 'to nobody' 1 "$WEFT" topo -F lab --route a c
same 'is said' "weft: fabric 'lab' has no node 'c'; 'weft topo -F lab' lists them" "$(err)"
rc 'a route is two nodes' 2 "$WEFT" topo -F lab --route a
rc 'a cable is pulled' 0 "$WEFT" topo -F lab --do 'Unlink "b"[1]'
rc 'no way' 1 "$WEFT" topo -F lab --route a b
ok 'and why' grep -q 'port 3 of "leaf" is Down, not Active\|"leaf" has no way to LID 3' "$T/err"
rc 'it is plugged in' 0 "$WEFT" topo -F lab --do 'ReLink "b"[1]'
until_ok 'and works' sh -c "'$WEFT' topo -F lab --route a b >/dev/null"
rc 'it waits' 0 "$WEFT" topo -F lab --do 'Wait 1'
rc 'how much is logged' 0 "$WEFT" topo -F lab --do 'Verbose'
same 'is said' 'verbose level 1: weftd logs up to warn' "$(cat "$T/out")"
rc 'and set' 0 "$WEFT" topo -F lab --do 'Verbose 9' --do Verbose --do 'Verbose 1'
same 'as far as there are levels' 'verbose level 3: weftd logs up to debug' "$(cat "$T/out")"
rc 'nobody is attached' 0 "$WEFT" topo -F lab --do Attached
same 'as it says' '' "$(cat "$T/out")"
rc 'who is not there is not cut off' 1 "$WEFT" topo -F lab --do 'X 1'
same 'in one line' 'weft: no process 1 has a umad file; Attached lists those that have' "$(err)"
"$WEFT" run -F lab --node b -- cat /dev/infiniband/umad0 2>"$T/cut" &
CLIENT=$!
attached() { "$WEFT" topo -F lab --do Attached | grep -q "^Client [0-9]*: connected at \"b\"\[1\], lid 3, 0 agents\$"; }
until_ok 'a client' attached
rc 'is cut off' 0 "$WEFT" topo -F lab --do "X $("$WEFT" topo -F lab --do Attached | sed 's/Client \([0-9]*\):.*/\1/')"
ok 'and gone' sh -c "! '$WEFT' topo -F lab --do Attached | grep Client"
wait $CLIENT
ok 'its file is as if the device were' grep -q 'Input/output error' "$T/cut"
for command in 'Quit' 'X 1'; do
	printf 'Hca 1 "a"\n\ndo %s\n' "$command" >"$T/bad_do"
	rc "do $command in a netlist" 1 "$WEFT" up -F two2 "$T/bad_do"
	ok 'is refused' grep -q "do $command: there is no such command here" "$T/err"
done
printf 'Hca 1 "a"\n\ndo Verbose 1\ndo Wait 60\n' >"$T/do"
rc 'do Wait in a netlist delays nothing' 0 timeout 30 "$WEFT" up -F two2 "$T/do"
rc 'and stays out of the way' 0 "$WEFT" down -F two2

# ---- weftd is killed ----
kill -9 "$PID"
rc 'one that is started anew' 0 "$WEFT" topo -F lab
ok 'has the same links' grep -q 'node a .* DOWN,ACTIVE ' "$T/out"
rc 'the cable comes back' 0 "$WEFT" topo -F lab --do 'ReLink "a"[1]'
until_ok 'and with it the LID' has a ' 1,2  ACTIVE,ACTIVE '
"$WEFT" topo -F lab >"$T/before"
same 'and the same files of nodes' 0x3 \
	"$(WEFT_NODE=1 "$WEFT" run -F lab -- cat /sys/class/infiniband/weft0/ports/1/lid)"
"$WEFT" up -F lab >"$T/out"
kill "$(pid_of)"
until_ok "it ends" test ! -S "$R/lab.sock"
rc 'after its good end' 0 "$WEFT" topo -F lab
ok 'all is as before' cmp "$T/out" "$T/before"
rc 'the other fabric lives' 0 "$WEFT" topo -F two
rm "$R/two.topo" # as good as a full disk
rc 'what cannot be kept' 1 "$WEFT" topo -F two --do 'Unlink "H0"[1]'
ok 'is said' grep -q "'Unlink \"H0\"\[1\]' was done, but cannot be kept.*: No such file" "$T/err"
same 'and done' 2 "$("$WEFT" topo -F two --json | grep -c '"link": true')"
finish
