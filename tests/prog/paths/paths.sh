#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The path shim on a tree written by paths_tree, without weftd.
. "$(dirname "$0")/../lib.sh"
export WEFT_AUTOSTART=0
TREE=$("$BUILD/tests/prog/paths/paths_tree") || exit 1
CALLS=$BUILD/tests/prog/paths/paths_calls
weft() { "$BUILD/weft" run -- "$@"; }

# Ordinary paths: the same with the shim and without.
mkdir "$T/here" && cd "$T/here" || exit 1
log=$T/log
mkdir "$log"
echo text >file
ln -s file link
ln -s nowhere dangling
mkdir dir infiniband
touch infiniband/x
long=$(head -c 5000 /dev/zero | tr '\0' x)
set -- "$PWD/file" "$PWD/link" "$PWD/dangling" "$PWD/dir" "$PWD/none" "$PWD/file/x" "" . .. / // file dir/../file \
	none/infiniband infiniband infiniband/x "/$long" "$long" /dev/null /dev /dev/infinibandx \
	/dev/infiniband_x/y /sys/class /sys/class/infinibandx /sys/class/infiniband_x \
	/sys/class/net/lo/ifindex /sys /devinfiniband /sys/class/infiniban /dev/../dev/null \
	/sys/class/net/../../class/net/lo NULL
"$CALLS" "$@" >"$log/plain" 2>&1
ok 'ordinary paths: transcript' test -s "$log/plain"
weft "$CALLS" "$@" >"$log/shimmed" 2>&1
ok 'ordinary paths behave as without the shim' diff "$log/plain" "$log/shimmed"
"$CALLS" -a . file link none dir infiniband infiniband/x >"$log/plain" 2>&1
weft "$CALLS" -a . file link none dir infiniband infiniband/x >"$log/shimmed" 2>&1
ok 'ordinary paths by directory fd' diff "$log/plain" "$log/shimmed"

# Our paths: as the tree without the shim, but for its own place in realpath.
hca=/sys/class/infiniband/weft0
set -- /sys/class/infiniband $hca $hca/ $hca/node_type $hca/node_type/ $hca/node_type/x $hca/none \
	$hca/ports/1/gids/0 $hca/device/net /sys/class/infiniband_verbs/abi_version \
	/sys/class/infiniband_mad /sys/class/infiniband_cm/x /dev/infiniband /dev/infiniband/ \
	/dev/infiniband/none "$hca/./ports//1/../1/state" /sys/class/infiniband_verbs/uverbs0/device/.. \
	/sys/class/infiniband_verbs/uverbs0/device/../node_type /sys/class/infiniband_mad/umad0/device/../../weft0/ports/ \
	$hca/device/infiniband_mad/umad0/.. $hca/device/infiniband/weft0/../weft0/ports/1/../1/state $hca/none/.. \
	$hca/none/../node_type $hca/node_type/.. $hca/node_type/../fw_ver /dev/infiniband/uverbs0/..
weft "$CALLS" "$@" >"$log/ours" 2>&1
for p; do
	"$CALLS" "$TREE$p"
done 2>&1 | sed "s,^$(realpath "$TREE"),," >"$log/tree"
sed -i '/^==/d' "$log/tree" "$log/ours"
ok 'our paths behave as the tree' diff "$log/tree" "$log/ours"
ok 'the transcript is about something' grep -q '1: CA' "$log/ours"
ok 'a directory fd of ours' test "$(weft "$CALLS" -a $hca node_type | grep -c "'1: CA")" -ge 4

# What programs see.
same node_type '1: CA' "$(weft cat $hca/node_type)"
same state '4: ACTIVE' "$(weft cat $hca/ports/1/state)"
same rate '100 Gb/sec (4X EDR)' "$(weft cat $hca/ports/1/rate)"
same 'dots and slashes' '4: ACTIVE' "$(weft cat //sys/./class///infiniband/weft0/ports/../ports/1/state)"
same 'class to class' 6 "$(weft cat /sys/class/infiniband/../infiniband_verbs/abi_version)"
same 'and out' "$(cat /sys/class/net/lo/ifindex)" "$(weft cat /sys/class/infiniband/../net/lo/ifindex)"
same 'GID 0' fe80:0000:0000:0000:0000:c0ff:fe00:0001 "$(weft cat $hca/ports/1/gids/0)"
same 'unused GID' 0000:0000:0000:0000:0000:0000:0000:0000 "$(weft cat $hca/ports/1/gids/255)"
same 'GID type' 'RoCE v2' "$(weft cat $hca/ports/1/gid_attrs/types/1)"
for file in types ndevs; do
	same "$file of an unused GID" "cat: $hca/ports/1/gid_attrs/$file/255: Invalid argument" \
		"$(weft cat $hca/ports/1/gid_attrs/$file/255 2>&1)"
	ok 'is a file that may be read' weft test -f $hca/ports/1/gid_attrs/$file/255 -a -r \
		$hca/ports/1/gid_attrs/$file/255
done
same 'ls' weft0 "$(weft ls /sys/class/infiniband)"
same 'ls -l of a node' 'crw-rw-rw- 231, 192' \
	"$(weft ls -l /dev/infiniband/uverbs0 | awk '{print $1, $5, $6}')"
same 'ls -l of the directory' 'crw-rw-rw-' "$(weft ls -l /dev/infiniband | awk '/uverbs0/ {print $1}')"
same 'umad0' 'crw------- 231, 0' "$(weft ls -l /dev/infiniband/umad0 | awk '{print $1, $5, $6}')"
same 'issm0' 'crw------- 231, 64' "$(weft ls -l /dev/infiniband/issm0 | awk '{print $1, $5, $6}')"
same 'the directory' 'issm0 umad0 uverbs0' "$(weft ls /dev/infiniband | sort | xargs)"
same 'umad0 of which device' 'weft0 1' \
	"$(weft cat /sys/class/infiniband_mad/umad0/ibdev /sys/class/infiniband_mad/umad0/port | xargs)"
same 'the ABI of umad' 5 "$(weft cat /sys/class/infiniband_mad/abi_version)"
same 'interface address' "$(cat /sys/class/net/lo/address)" "$(weft cat $hca/device/net/lo/address)"
same realpath $hca "$(weft realpath $hca)"
same 'realpath of a node' /dev/infiniband/uverbs0 "$(weft realpath /dev/infiniband/uverbs0)"
same 'realpath through a link' $hca/device "$(weft realpath /sys/class/infiniband_verbs/uverbs0/device)"
same 'realpath behind a link' $hca "$(weft realpath /sys/class/infiniband_verbs/uverbs0/device/..)"
same 'and out by one' "$(realpath /sys/class/net/lo/..)" "$(weft realpath $hca/device/net/lo/..)"
same 'and in again' $hca "$(weft realpath /sys/class/infiniband/../net/../infiniband/weft0)"
same 'cd behind a link' "device fw_ver" \
	"$(weft sh -c 'cd -P /sys/class/infiniband_mad/umad0/device/.. && echo dev* fw*')"
same 'the files of a device' 'weft0 issm0 umad0 uverbs0' \
	"$(weft ls $hca/device/infiniband $hca/device/infiniband_mad $hca/device/infiniband_verbs | grep -v : | xargs)"
same 'of which port' 1 "$(weft cat /sys/class/infiniband_verbs/uverbs0/device/infiniband_mad/issm0/port)"
same 'readlink of a node' '' "$(weft readlink /dev/infiniband/uverbs0)"
ok 'test -c' weft test -c /dev/infiniband/uverbs0
ok 'test -r -w' weft test -r /dev/infiniband/uverbs0 -a -w /dev/infiniband/uverbs0
ok 'the node opens for both' weft sh -c ': <>/dev/infiniband/uverbs0'
rc 'no other node' 1 weft test -e /dev/infiniband/uverbs1
rc 'attributes are read-only' 2 weft sh -c 'echo x >/sys/class/infiniband/weft0/node_desc'
same 'find' 3 "$(weft find $hca/ports/1/gids -name '[012]' | wc -l)"
same 'find of a name' "$hca/ports/1/pkeys/0" "$(weft find $hca/ports/1/pkeys -type f)"
same 'relative from /sys/class' weft0 "$(cd /sys/class && weft ls infiniband)"
same 'relative from /sys' '1: CA' "$(cd /sys && weft cat class/infiniband/weft0/node_type)"
same 'cd' weft0 "$(weft sh -c 'cd /sys/class/infiniband && echo *')"
same 'cd, relative' '1: CA' "$(cd /sys/class && weft sh -c 'cd infiniband && cat weft0/node_type')"
rc 'cd to none' 2 weft sh -c 'cd /sys/class/infiniband/none'
if command -v bash >/dev/null; then
	same 'globbing in bash' "$hca/ports/1/gids/0" "$(weft bash -c "echo $hca/ports/*/gids/0")"
fi
same 'globbing in sh' "$hca/ports/1/gids/0" "$(weft sh -c "echo $hca/ports/*/gids/0")"
if [ -x /usr/bin/python3 ]; then
	same 'python' "['weft0'] True 231:192 True" "$(weft /usr/bin/python3 -c '
import os, stat
st = os.stat("/dev/infiniband/uverbs0")
print(os.listdir("/sys/class/infiniband"), stat.S_ISCHR(st.st_mode),
      "%d:%d" % (os.major(st.st_rdev), os.minor(st.st_rdev)),
      os.path.exists("/sys/class/infiniband/weft0/device/net/"))')"
fi

# A value that changes is seen by its next reader; the directories stay.
"$BUILD/tests/prog/paths/paths_tree" ::ffff:10.1.2.3 >/dev/null
same 'a changed GID' 0000:0000:0000:0000:0000:ffff:0a01:0203 "$(weft cat $hca/ports/1/gids/1)"

rc 'hard conditions' 0 weft "$BUILD/tests/prog/paths/paths_hard"
cat "$T/out" "$T/err"

# Without a tree there are no devices, and nothing else breaks.
rm -rf "$TREE"
rc 'no tree' 2 weft ls /sys/class/infiniband
rc 'no tree, other paths' 0 weft ls /sys/class/net
WEFT_RUNTIME_DIR=/dev/null/x rc 'no runtime directory' 2 weft ls /sys/class/infiniband
finish
