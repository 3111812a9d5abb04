#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# weft topo: what it prints of a topology, and what it says of a bad one.
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft
err() { cat "$T/err"; }

cat >"$T/net" <<'EOF'
switchguid=0x8f10400410015(8f10400410015)
Switch 4 "leaf" # "the corner" enhanced port 0 lid 3 lmc 0
[1] "a"
[4] "b"[2]

Hca 1 "a" # "node a"
[1](77) "leaf"[1] # lid 4 lmc 0
caguid=0x5000
Ca 2 "b"
[2] "leaf"[4]

do Unlink "a"[1]
EOF
cat >"$T/table" <<'EOF'
number  kind     id    description  GUID                ports  links
     0  adapter  a     node a       0x0000000000100000      1      1
     1  adapter  b     b            0x0000000000005000      2      1
     2  switch   leaf  the corner   0x0008f10400410015      4      2
adapters: 2, switches: 1, routers: 0, links: 2
EOF
rc 'a table' 0 "$WEFT" topo "$T/net"
ok 'it is right' cmp "$T/out" "$T/table"
"$WEFT" topo - <"$T/net" >"$T/out"
ok 'from standard input, too' cmp "$T/out" "$T/table"
rc 'a netlist' 0 "$WEFT" topo --net "$T/net"
cp "$T/out" "$T/again"
rc 'which is a netlist' 0 "$WEFT" topo --net "$T/again"
ok 'of the same topology' cmp "$T/out" "$T/again"
rc 'JSON' 0 "$WEFT" topo --json "$T/net"
ok 'with a GUID of a port' grep -q '"guid": "0x0000000000000077"' "$T/out"
rc 'a graph' 0 "$WEFT" topo --dot "$T/net"
ok 'with a wire' grep -q 'n0 -- n2 \[taillabel="1", headlabel="1"\]' "$T/out"
rc 'a picture' 0 "$WEFT" topo --svg "$T/net"
ok 'with a wire' grep -q '<title>b\[2\] - leaf\[4\]</title>' "$T/out"
rc 'a SPEC' 0 "$WEFT" topo ft3:36
same 'its summary' 'adapters: 11664, switches: 1620, routers: 0, links: 34992' "$(tail -n 1 "$T/out")"

rc 'no topology' 1 "$WEFT" topo
same 'it says so' "weft: no weftd serves fabric 'default'; 'weft up -F default FILE|SPEC' starts one" "$(err)"
rc 'two' 2 "$WEFT" topo ib:1 ib:2
rc 'two forms' 2 "$WEFT" topo --net --svg ib:1
rc 'an unknown option' 2 "$WEFT" topo --nonsense ib:1
rc 'no file' 1 "$WEFT" topo "$T/none"
same 'it says so' "weft: cannot open '$T/none': No such file or directory" "$(err)"
printf 'Hca 1 "a"\n[1] "b"[1]\n' >"$T/bad"
rc 'a bad file' 1 "$WEFT" topo "$T/bad"
same 'it says why' "weft: $T/bad:2: there is no node \"b\"" "$(err)"
rc 'no netlist' 1 "$WEFT" topo "$T/table"
same 'it says so' "weft: $T/table: no node in it; is it a netlist?" "$(err)"
rc 'a bad SPEC' 1 "$WEFT" topo ft3:5
same 'it says why' 'weft: ft3:5: K is even' "$(err)"
ok 'output that cannot be written is noticed' sh -c "! '$WEFT' topo ib:2 >/dev/full 2>'$T/err'"
same 'in one line' 1 "$(wc -l <"$T/err")"
finish
