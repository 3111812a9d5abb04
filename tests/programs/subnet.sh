#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Debian's opensm, osmtest and infiniband-diags on simulated subnets, unmodified: what they print is
# held against the topology.
. "$(dirname "$0")/../prog/lib.sh"
for program in opensm osmtest saquery ibnetdiscover; do
	if ! command -v $program >/dev/null; then
		echo "$program is not installed: tools/setup test"
		exit 77
	fi
done
WEFT=$BUILD/weft
# An unmodified program must load a sanitizer's runtime first; leaks are its own.
runtime=$(ldd "$BUILD/lib/libibumad.so.3" | sed -n 's/.* => \(.*lib[at]san[^ ]*\).*/\1/p')
if [ -n "$runtime" ]; then
	export LD_PRELOAD="$runtime" ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS"
fi
# osmtest ends with what it finds in memory that it has not written.
unset MALLOC_PERTURB_
export OSM_CACHE_DIR="$T" OSM_TMP_DIR="$T" WEFT_IDLE_EXIT=1
SM='' STANDBY='' LARGE='' LIMITED='' PAIR='' WATCH=''
trap 'for p in $SM $STANDBY $LARGE $LIMITED $PAIR $WATCH; do kill -9 $p; done 2>/dev/null
for f in lab torus two net routed large limited pair speeds; do "$WEFT" down -F $f; done >/dev/null 2>&1; rm -rf "$T"' EXIT
# In $T/out, of node H0 unless it is named.
node=H0
on() { timeout 60 "$WEFT" run -F lab --node "$node" -- "$@"; }
lines() { grep -c "$1" "$T/out"; }
says() { rc "$2" 0 on $2 && ok "$2 says $1" grep -q "$1" "$T/out"; }
# until_ok TEXT COMMAND...: it has to succeed in 30 s.
until_ok() {
	text=$1
	shift
	end=$(($(date +%s) + 30))
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt $end ] || break
		sleep 0.02
	done
	rc "$text" 0 "$@"
}
# The lines of opensm's log $1 that an administrator would look at.
errors() { grep ' ERR ' "$T/$1"; }
up() { grep -q 'SUBNET UP' "$T/$1"; }

printf 'force_log_flush TRUE\n' >"$T/flush.conf"

rc 'a fat tree' 0 "$WEFT" up -F lab ft2:8,4,2
rc 'a torus' 0 "$WEFT" up -F torus torus:3x3x3,1
HOSTS=16 SWITCHES=6 NODES=22

# ---- a switch has port 0, an adapter of two ports has two of each ----
node='leaf 0'
rc 'files of a switch' 0 on ls /sys/class/infiniband_mad /dev/infiniband
same 'files of a switch' 'umad0 issm0' "$(echo $(grep -o 'umad0\|issm0' "$T/out" | sort -ru))"
says '^0$' 'cat /sys/class/infiniband_mad/umad0/port'
says 'sm lid 17 ' sminfo
printf 'Switch 4 "S"\n[1] "A"[1]\n[2] "A"[2]\n\nHca 2 "A"\n[1] "S"[1] # lid 8 lmc 2\n[2] "S"[2]\n' >"$T/two"
rc 'an adapter of two ports' 0 "$WEFT" up -F two "$T/two"
rc 'its files' 0 "$WEFT" run -F two --node A -- ls /sys/class/infiniband_mad
same 'its files' 'abi_version issm0 issm1 umad0 umad1' "$(echo $(cat "$T/out"))"
rc 'its second port' 0 "$WEFT" run -F two --node A -- ibaddr -P 2
rc 'the LIDs of its first' 0 "$WEFT" run -F two --node A -- ibaddr -P 1
ok 'are four, as the netlist says' grep -q 'LID start 0x8 end 0xb$' "$T/out"
same 'in a file, too' '2 0x8' "$("$WEFT" run -F two --node A -- sh -c \
	'cd /sys/class/infiniband/weft0/ports/1 && echo $(cat lid_mask_count lid)')"
for lid in 8 9 10 11; do
	rc "from the second to LID $lid of the first" 0 "$WEFT" run -F two --node A -- \
		smpquery -P 2 nodeinfo $lid
	ok 'it comes there' grep -q 'LocalPort:\.*1$' "$T/out"
done
rc 'which has no more' 255 "$WEFT" run -F two --node A -- smpquery -P 2 -t 20 nodeinfo 12
rc 'down' 0 "$WEFT" down -F two
node=H0

# ---- a router ----
cat >"$T/routed" <<'END'
Switch 4 "S"
[1] "A"[1]
[2] "R"[1]

Hca 1 "A"
[1] "S"[1]

Rt 2 "R" # "a router"
[1] "S"[2]
END
rc 'a router' 0 "$WEFT" up -F routed "$T/routed"
# What opensm remembers of one subnet is wrong in another.
mkdir "$T/beside.cache" "$T/large.cache"
rc 'opensm beside it' 0 env OSM_CACHE_DIR="$T/beside.cache" timeout 60 "$WEFT" run -F routed --node A -- opensm -o -f "$T/beside"
ok 'opensm beside it: SUBNET UP' up beside
same 'opensm beside it: errors' '' "$(errors beside)"
rc 'ibrouters' 0 "$WEFT" run -F routed --node A -- ibrouters
same 'ibrouters' 1 "$(lines '^Rt.*0x0000000000300000 ports 2 "a router"')"
rc 'on it' 0 "$WEFT" run -F routed --node R -- smpquery -D nodeinfo 0
ok 'on it' grep -q '^NodeType:\.*Router' "$T/out"
rc 'down' 0 "$WEFT" down -F routed

# ---- limited members behind a switch that enforces P_Keys, as opensm has it do ----
printf 'Default=0x7fff, ipoib, defmember=limited : ALL, SELF=full ;\n' >"$T/limited.partitions"
mkdir "$T/limited.cache"
rc 'hosts on a switch' 0 "$WEFT" up -F limited ib:3
limited() { timeout 60 "$WEFT" run -F limited --node "$@"; }
OSM_CACHE_DIR=$T/limited.cache "$WEFT" run -F limited --node H0 -- opensm -F "$T/flush.conf" \
	-P "$T/limited.partitions" -f "$T/limited" >/dev/null 2>&1 &
LIMITED=$!
until_ok 'opensm with limited members: SUBNET UP' up limited
rc 'the port of one' 0 limited H1 -- smpquery portinfo 4 2
same 'it enforces, in and out' 2 "$(lines 'PartEnforce.*\.1$')"
rc 'a limited member asks the SA' 0 limited H1 -- saquery -t 10000 NR
rc 'and a full one' 0 limited H1 -- perfquery 1 1
rc 'which asks it' 0 limited H0 -- perfquery 2 1
rc 'but not another limited one' 255 limited H1 -- perfquery -t 20 3 1
kill -9 $LIMITED
LIMITED=''
rc 'down' 0 "$WEFT" down -F limited

# ---- two adapters back to back: an SM that moves changes nothing but what ports say ----
printf 'Hca 1 "A"\n[1] "B"[1]\n\nHca 1 "B"\n[1] "A"[1]\n' >"$T/pair.net"
printf 'force_log_flush TRUE\nsubnet_prefix 0xfec0000000000000\nsm_sl 3\nsubnet_timeout 15\n' \
	>"$T/prefix.conf"
mkdir "$T/pair.cache"
rc 'two adapters' 0 "$WEFT" up -F pair "$T/pair.net"
pair() { timeout 60 "$WEFT" run -F pair --node "$@"; }
# pair_sm NAME: opensm at B with NAME.conf.
pair_sm() {
	OSM_CACHE_DIR=$T/pair.cache "$WEFT" run -F pair --node B -- opensm -F "$T/$1.conf" \
		-f "$T/pair.$1" >/dev/null 2>&1 &
	PAIR=$!
	until_ok "opensm with $1.conf: SUBNET UP" up "pair.$1"
}
heard() { grep -q "IBV_EVENT_$1 .*port 1" "$T/events"; }
"$WEFT" run -F pair --node A -- stdbuf -oL ibv_asyncwatch >"$T/events" 2>&1 &
WATCH=$!
until_ok 'ibv_asyncwatch waits' grep -q 'async event FD' "$T/events"
rc 'the SM before' 0 pair A -- sminfo
same 'is the built-in one' 'sm lid 1' "$(grep -o 'sm lid [0-9]*' "$T/out")"
pair_sm flush
until_ok 'SM_CHANGE comes' heard SM_CHANGE
rc 'sminfo' 0 pair A -- sminfo
same 'asks the new one' 'sm lid 2' "$(grep -o 'sm lid [0-9]*' "$T/out")"
rc 'so does saquery' 0 pair A -- saquery -t 10000 NR
rc 'ibv_devinfo' 0 pair A -- ibv_devinfo
same 'says where it is' 2 "$(sed -n 's/.*sm_lid:[^0-9]*//p' "$T/out")"
kill -9 $PAIR
pair_sm prefix
until_ok 'GID_CHANGE comes' heard GID_CHANGE
as_told() {
	[ '3 15 fec0:0000:0000:0000:0000:0000:0010:0001' = "$(echo $(pair A -- ibv_devinfo -v |
		sed -n 's/.*\(sm_sl\|subnet_timeout\|GID\[  0\]\):[^0-9a-f]*//p'))" ]
}
until_ok 'ibv_devinfo has what opensm was told' as_told
rc 'and sysfs' 0 pair A -- cat /sys/class/infiniband/weft0/ports/1/gids/0
same 'and sysfs' fec0:0000:0000:0000:0000:0000:0010:0001 "$(cat "$T/out")"
kill -9 $PAIR $WATCH
PAIR='' WATCH=''
rc 'down' 0 "$WEFT" down -F pair

# ---- devices that are asked for Mellanox's ExtendedPortInfo; FDR10, and a router behind XDR ----
cat >"$T/speeds.net" <<'END'
vendid=0x2c9
devid=0xc738
switchguid=0x2c90000000100(2c90000000100)
Switch	36 "S-0002c90000000100"		# "SwitchX" enhanced port 0 lid 1 lmc 0
[1]	"H-0002c90000000200"[1](2c90000000201) 		# "one" lid 2 4xFDR10
[2]	"H-0002c90000000300"[1](2c90000000301) 		# "two" lid 3 4xFDR
[3]	"S-b8e924030000b921"[3]		# "Q3400" lid 8 4xQDR

vendid=0x2c9
devid=0x1003
caguid=0x2c90000000200
Ca	2 "H-0002c90000000200"		# "one"
[1](2c90000000201) 	"S-0002c90000000100"[1]		# lid 2 lmc 0 "SwitchX" lid 1 4xFDR10

vendid=0x2c9
devid=0x1003
caguid=0x2c90000000300
Ca	2 "H-0002c90000000300"		# "two"
[1](2c90000000301) 	"S-0002c90000000100"[2]		# lid 3 lmc 0 "SwitchX" lid 1 4xFDR

vendid=0x2c9
devid=0xd2f4
switchguid=0xb8e924030000b921(b8e924030000b921)
Switch	152 "S-b8e924030000b921"		# "Q3400" enhanced port 0 lid 8 lmc 0
[1]	"H-b8e92403009ca838"[1](b8e92403009ca838) 		# "three" lid 21 4xXDR
[3]	"S-0002c90000000100"[3]		# "SwitchX" lid 1 4xQDR
[149]	"R-b8e924030000b928"[2](b8e924030000b929) 		# "Q3400/RT" lid 9 1xXDR

vendid=0x2c9
devid=0x1023
caguid=0xb8e92403009ca838
Ca	1 "H-b8e92403009ca838"		# "three"
[1](b8e92403009ca838) 	"S-b8e924030000b921"[1]		# lid 21 lmc 0 "Q3400" lid 8 4xXDR

vendid=0x2c9
devid=0xc839
rtguid=0xb8e924030000b928
Rt	8 "R-b8e924030000b928"		# "Q3400/RT"
[2](b8e924030000b929) 	"S-b8e924030000b921"[149]		# lid 9 lmc 0 "Q3400" lid 8 1xXDR
END
mkdir "$T/speeds.cache"
rc 'links of many speeds' 0 "$WEFT" up -F speeds "$T/speeds.net"
speeds() { OSM_CACHE_DIR=$T/speeds.cache timeout 60 "$WEFT" run -F speeds --node "$@"; }
rc 'ibnetdiscover' 0 speeds one -- ibnetdiscover
same 'ibnetdiscover: what it does not like' '' "$(grep 'bad status' "$T/out")"
# That of Debian 12 knows nothing of XDR: PortInfo's old fields say QDR then.
same 'ibnetdiscover: speeds' '1xQDR 1xQDR 4xFDR 4xFDR 4xFDR10 4xFDR10 4xQDR 4xQDR 4xQDR 4xQDR' \
	"$(echo $(grep -o '[0-9]x[A-Z][A-Z0-9]*$' "$T/out" | sort))"
cp "$T/out" "$T/speeds.discovered"
rc 'what it prints is a topology' 0 "$WEFT" topo "$T/speeds.discovered"
rc 'iblinkinfo' 0 speeds one -- iblinkinfo
same 'iblinkinfo: FDR10' 2 "$(lines '10.0 Gbps (FDR10) Active')"
for case in 'one 40 (FDR10)' 'two 56' 'three 800'; do
	rc 'ibstat' 0 speeds "${case%% *}" -- ibstat weft0 1
	same "ibstat: rate of ${case%% *}" "${case#* }" "$(sed -n 's/^Rate: //p' "$T/out")"
done
rc 'its file' 0 speeds three -- cat /sys/class/infiniband/weft0/ports/1/rate
same 'its file' '800 Gb/sec (4X XDR)' "$(cat "$T/out")"
rc 'the bytes of PortInfo from LinkSpeedExtActive2 on' 0 speeds one -- smpdump 21 0x15 1
same 'XDR is all of them' 2900 "$(sed -n 's/^\(....\) \(....\) \(....\) \(....\) \(....\) .*/\5/p' \
	"$T/out" | sed -n 4p)"
rc 'a link without its extended speeds' 0 speeds one -- ibportstate 1 2 espeed 30
rc 'is trained anew' 0 speeds one -- ibportstate 1 2 reset
rc 'what it has become' 0 speeds one -- smpquery MEPI 1 2
same 'is FDR10' '0x01 0x01 0x01' "$(echo $(sed -n 's/^LinkSpeed.*\.//p' "$T/out"))"
for node in one three; do
	rc "opensm at $node" 0 speeds $node -- opensm -o -f "$T/speeds.$node"
	ok "opensm at $node: SUBNET UP" up speeds.$node
	same "opensm at $node: errors" '' "$(errors speeds.$node)"
done
printf 'fdr10 2\n' >"$T/no_fdr10.conf"
rc 'opensm that forbids FDR10' 0 speeds three -- opensm -o -F "$T/no_fdr10.conf" -f "$T/speeds.no_fdr10"
same 'opensm that forbids FDR10: errors' '' "$(errors speeds.no_fdr10)"
rc 'has done so' 0 speeds one -- smpquery MEPI 1 1
same 'has done so' '0x01 0x00 0x01' "$(echo $(sed -n 's/^LinkSpeed.*\.//p' "$T/out"))"
rc 'down' 0 "$WEFT" down -F speeds
node=H0

# ---- 702 nodes, in a message of many segments ----
rc 'a large tree' 0 "$WEFT" up -F large ft2:36,36,18
OSM_CACHE_DIR=$T/large.cache "$WEFT" run -F large --node H0 -- opensm -F "$T/flush.conf" -f "$T/large" \
	>/dev/null 2>&1 &
LARGE=$!
until_ok 'opensm of 702 nodes: SUBNET UP' up large
rc 'saquery of 702 nodes' 0 timeout 60 "$WEFT" run -F large --node H1 -- saquery -t 10000 NR
same 'its NodeRecords' 702 "$(lines 'NodeRecord dump')"
kill -9 $LARGE
LARGE=''
rc 'down' 0 "$WEFT" down -F large

# ---- the netlists of ibsim-utils ----
for net in /usr/share/doc/ibsim-utils/net-examples/net*; do
	[ -e "$net" ] || { echo 'note: no netlists of ibsim-utils: tools/setup test'; break; }
	name=${net##*/}
	mkdir "$T/$name"
	rc "$name" 0 "$WEFT" up -F net "$net"
	rc "opensm on $name" 0 env OSM_CACHE_DIR="$T/$name" OSM_TMP_DIR="$T/$name" timeout 60 \
		"$WEFT" run -F net --node 0 -- opensm -o -f "$T/$name/log"
	ok "$name: SUBNET UP" up "$name/log"
	same "$name: errors" '' "$(errors "$name/log")"
	rc 'down' 0 "$WEFT" down -F net
done

# ---- every routing engine brings the subnet up ----
for engine in minhop updn dnup ftree lash dor sssp dfsssp nue; do
	rc "opensm $engine" 0 on opensm -o -R $engine -f "$T/$engine"
	ok "$engine: SUBNET UP" up $engine
	same "$engine: errors" '' "$(errors $engine)"
done
cat >"$T/torus.conf" <<'END'
torus 3 3 3
xp_link 0x200000 0x200001
yp_link 0x200000 0x200003
zp_link 0x200000 0x200009
END
node=0
rc 'opensm torus-2QoS' 0 timeout 60 "$WEFT" run -F torus --node 0 -- opensm -o -Q -R torus-2QoS,no_fallback \
	--torus_config "$T/torus.conf" -f "$T/torus-2QoS"
ok 'torus-2QoS: SUBNET UP' up torus-2QoS
rc 'down' 0 "$WEFT" down -F torus
node=H0
rc 'opensm -Q' 0 on opensm -o -Q -f "$T/qos"
ok 'opensm -Q: SUBNET UP' up qos
same 'opensm -Q: errors' '' "$(errors qos)"

# ---- two subnet managers ----
printf 'sminfo_polling_timeout 100\npolling_retry_number 2\nperfmgr TRUE\nforce_log_flush TRUE\n' >"$T/opensm.conf"
"$WEFT" run -F lab --node H0 -- opensm -F "$T/opensm.conf" -p 5 -f "$T/master" >/dev/null 2>&1 &
SM=$!
until_ok 'opensm: SUBNET UP' up master
"$WEFT" run -F lab --node H1 -- opensm -F "$T/opensm.conf" -p 3 -f "$T/second" >/dev/null 2>&1 &
STANDBY=$!
until_ok 'the second stands by' grep -q 'Entering STANDBY' "$T/second"
says 'sm lid 1 .*priority 5 state 3 SMINFO_MASTER' sminfo
says 'SMINFO_STANDBY' 'sminfo 2'

# ---- the subnet administrator ----
rc 'saquery' 0 on saquery -t 10000 NR
same 'NodeRecords' $NODES "$(lines 'NodeRecord dump')"
says 'dlid\.*2' 'saquery -t 10000 PR --src-to-dst 1:2'
same 'PathRecords of a pair' 1 "$(lines 'PathRecord dump')"
rc 'osmtest' 0 on osmtest -f c -t 10000 -i "$T/inventory"
ok 'osmtest: PASS' grep -q 'TEST "Create Inventory" PASS' "$T/out"

# ---- ibutils and srptools ----
if command -v ibdiagnet >/dev/null; then
	rc 'ibdiagnet' 0 on ibdiagnet -o "$T/ibutils"
	same 'ibdiagnet: stages without an error' 6 "$(lines '^    .* Check  *0  *[01] \|Report  *0  *0 ')"
	same 'ibdiagnet: errors' '' "$(grep '^-E-' "$T/out")"
	same 'ibdiagnet: links' 24 "$(grep -c '^{' "$T/ibutils/ibdiagnet.lst")"
	# Debian's ibtopodiff reads both sides and then ends by a signal, with its own samples, too.
	mkdir "$T/ibnl"
	printf 'TOPSYSTEM Host\n\nNODE CA 1 Weft U1\n 1 -> P1\n\n' >"$T/ibnl/Host.ibnl"
	{ printf 'TOPSYSTEM Eight\n\nNODE SW 8 Weft U1\n'; seq 8 | sed 's/.*/ & -> P&/'; echo; } \
		>"$T/ibnl/Eight.ibnl"
	"$WEFT" topo ft2:8,4,2 --net | awk -F '"' '
		/^Switch/ { sw = 1; print "\nEight " $2 }
		/^Hca/ { sw = 0 }
		sw && /^\[/ {
			split($1, own, /[][]/); split($3, peer, /[][]/)
			print " P" own[2] " -> " ($2 ~ /^S/ ? "Eight " : "Host ") $2 " P" peer[2]
		}' >"$T/lab.topology"
	for list in ibutils/ibdiagnet.lst opensm-subnet.lst; do
		IBDM_IBNL_PATH=$T/ibnl ibtopodiff -t "$T/lab.topology" -d "$T/$list" -s H1/U1 -p 1 \
			-g 0x100003 >"$T/out" 2>&1
		same "ibtopodiff: nodes of $list" 2 "$(lines '^-I- Defined 22/22 systems/nodes')"
	done
else
	echo 'note: no ibutils: tools/setup test'
fi
if command -v ibsrpdm >/dev/null; then
	rc 'ibsrpdm' 0 on ibsrpdm -v
	ok 'ibsrpdm has asked the SA' grep -q 'performing a capability query' "$T/out"
	rc 'ibsrpdm' 0 on ibsrpdm -c
	same 'ibsrpdm: targets' '' "$(cat "$T/out")"
else
	echo 'note: no srptools: tools/setup test'
fi

# ---- the diags ----
rc ibhosts 0 on ibhosts
same 'ibhosts' $HOSTS "$(lines '^Ca')"
rc ibswitches 0 on ibswitches
same 'ibswitches' $SWITCHES "$(lines '^Switch')"
rc ibnodes 0 on ibnodes
same 'ibnodes' $NODES "$(lines '^[CS]')"
rc ibrouters 0 on ibrouters
same 'ibrouters' '' "$(cat "$T/out")"
rc ibnetdiscover 0 on ibnetdiscover
same 'ibnetdiscover: adapters' $HOSTS "$(lines '^Ca')"
same 'ibnetdiscover: switches' $SWITCHES "$(lines '^Switch')"
cp "$T/out" "$T/discovered"
rc 'what it prints is a topology' 0 "$WEFT" topo "$T/discovered"
same 'with all its nodes' $NODES "$(lines '^ *[0-9]')"
rc iblinkinfo 0 on iblinkinfo
same 'iblinkinfo: ends of links' 48 "$(lines '/ *LinkUp)')"
rc 'ibqueryerrors' 0 on ibqueryerrors
rc 'one counter' 0 "$WEFT" topo -F lab --do 'PerformanceSet "S0"[1] PortCounters.SymbolErrorCounter=700'
rc 'another' 0 "$WEFT" topo -F lab --do 'PerformanceSet "S0"[2] PortCountersExtended.PortRcvErrors=300'
on ibqueryerrors >"$T/out" 2>&1
same 'ibqueryerrors: by either attribute' '1 SymbolErrorCounter == 700 2 PortRcvErrors == 300' \
	"$(echo $(sed -n 's/.*port \([12]\): \[\([^]]* == [0-9]*\).*/\1 \2/p' "$T/out"))"
rc 'perfquery, of the classic one' 0 on perfquery 17 2
ok 'has it' grep -q 'PortRcvErrors:\.*300$' "$T/out"
rc 'perfquery -x' 0 on perfquery -x 17 1
ok 'has the other' grep -q 'SymbolErrorCounter:\.*700$' "$T/out"
on ibqueryerrors --clear-errors >"$T/out" 2>&1
same 'of both nothing is left' '' "$(on perfquery -x 17 255 | grep 'SymbolErr.*[1-9]$\|RcvErrors.*[1-9]$')"
rc ibidsverify 0 on ibidsverify
says 'LID start 0x1 end 0x1' ibaddr
says 'State: Active' ibstat
says 'ACTIVE' ibstatus
says '22 valid lids dumped' 'ibroute 20'
says 'lid 9-9 "H8"' 'ibtracert 1 9'
says 'PortXmitPkts' 'perfquery 20 1'
says 'NumPorts:\.*8' 'smpquery nodeinfo 20'
says 'LinkState:\.*Active' 'smpquery portinfo 1 1'
says 'LinearFdbCap' 'smpquery switchinfo 20'
says 'leaf' 'smpquery nodedesc 20'
says '64 pkeys capacity' 'smpquery pkeys 1'
says 'SL2VL table' 'smpquery sl2vl 20'
says 'WEIGHT' 'smpquery vlarb 20 1'
says 'SMP status: 0x8000' 'smpdump -D 0 17'
says 'PhysLinkState:\.*LinkUp' 'ibportstate 20 1'
says 'H15' dump_lfts
says '22 valid lids dumped' dump_fts
rc dump_mfts 0 on dump_mfts
rc 'a cache' 0 on ibnetdiscover --cache "$T/cache"
rc 'ibcacheedit' 0 on ibcacheedit --switchguid 0x200000:0x2f0000 "$T/cache" "$T/edited"
rc 'what it has written' 0 on ibnetdiscover --load-cache "$T/edited"
same 'another GUID' 8 "$(lines 2f0000)"
on dump_lfts >"$T/lfts"
rc 'check_lft_balance' 0 on check_lft_balance -v -l "$T/lfts" -i "$T/cache"
same 'check_lft_balance: switches' $SWITCHES "$(lines '^Switch Port Usage')"
says '0x0000000000200000 1 .*0x0000000000100000 1 (H0)' 'ibfindnodesusing 0x200000 1'
rc 'nobody answers for congestion control' 255 on ibccquery CongestionInfo 20
ok 'with a status' grep -q 'congestion info query failed' "$T/out"
rc 'or can set it' 255 on ibccconfig CongestionKeyInfo 20 0 0 0 0
rc 'or for a vendor' 255 on vendstat -N 20
node=H1
"$WEFT" run -F lab --node H2 -- ibsysstat -S >/dev/null 2>&1 &
SERVER=$!
until_ok 'ibsysstat answers' on ibsysstat 3 ping
kill $SERVER
"$WEFT" run -F lab --node H2 -- ibping -S >/dev/null 2>&1 &
SERVER=$!
until_ok 'ibping answers' on ibping -c 1 3
kill $SERVER

# ---- links and subnet managers that go ----
# How many LIDs the first leaf sends out of a port; 5 and 6 lead to the two spines.
by_port() { "$WEFT" run -F lab --node H1 -- ibroute 17 | grep -c "^0x[0-9a-f]* $1 "; }
by_some() { [ "$(by_port "$1")" -gt 0 ]; }
by_none() { by_some "$2" && [ "$(by_port "$1")" = 0 ]; }
ok 'a link between switches carries routes' by_some 005
rc 'it goes' 0 "$WEFT" topo -F lab --do 'Unlink "S0"[5]'
until_ok 'the master gets the trap' grep -q 'num:128 (Link state change)' "$T/master"
until_ok 'and routes around it' by_none 005 006
says '22 valid lids dumped' 'ibroute 17'
says 'lid 9-9 "H8"' 'ibtracert 1 9'
rc 'it comes back' 0 "$WEFT" topo -F lab --do 'ReLink "S0"[5]'
until_ok 'and carries routes again' by_some 005
rc 'a link goes' 0 "$WEFT" topo -F lab --do 'Unlink "H9"[1]'
until_ok 'and the master has seen it' sh -c \
	"'$WEFT' run -F lab --node H1 -- saquery NR | grep -c 'NodeRecord dump' | grep -q '^21$'"
rc 'it comes back' 0 "$WEFT" topo -F lab --do 'ReLink "H9"[1]'
kill -9 $SM
until_ok 'the second is the master' grep -q 'Entering MASTER' "$T/second"
until_ok 'and has brought it up' up second
says 'sm lid 2 .*SMINFO_MASTER' sminfo
kill -9 $STANDBY
SM='' STANDBY=''
until_ok 'after both the built-in one is back' sh -c \
	"'$WEFT' run -F lab --node H1 -- sminfo | grep -q 'sm lid 17 .*SMINFO_MASTER'"
same 'all links are ACTIVE' "$("$WEFT" topo -F lab --json | grep -c '"link": true')" \
	"$("$WEFT" topo -F lab --json | grep -A1 '"state": "ACTIVE"' | grep -c '"link": true')"
finish
