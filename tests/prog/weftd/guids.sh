#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Two network namespaces of one machine, one runtime directory, one fabric name: two adapters.
. "$(dirname "$0")/../netns.sh"
. "$(dirname "$0")/../lib.sh"
WEFT=$BUILD/weft
export WEFT WEFT_IDLE_EXIT=60
unset WEFT_AUTOSTART

# What a namespace has: the GUID, the same after weftd was started anew, and GID 0.
cat >"$T/look" <<-'END'
	file=/sys/class/infiniband/weft0
	"$WEFT" run cat $file/node_guid $file/sys_image_guid
	"$WEFT" down >/dev/null
	"$WEFT" run cat $file/node_guid $file/ports/1/gids/0
	"$WEFT" down >/dev/null
END
sh "$T/look" >"$T/here"
unshare --net sh "$T/look" >"$T/there"

line() { sed -n "$1p" "$T/$2"; }
for at in here there; do
	ok "a GUID $at" test -n "$(line 1 $at)"
	same "of the system $at" "$(line 1 $at)" "$(line 2 $at)"
	same "again $at" "$(line 1 $at)" "$(line 3 $at)"
	same "GID 0 $at" "fe80:0000:0000:0000:$(line 1 $at)" "$(line 4 $at)"
done
ok 'the GUIDs differ' test "$(line 1 here)" != "$(line 1 there)"
# In another directory there is another weftd, and so another adapter.
export WEFT_RUNTIME_DIR="$T/run2"
mkdir -m 700 "$WEFT_RUNTIME_DIR"
sh "$T/look" >"$T/besides"
ok 'a GUID besides' test -n "$(line 1 besides)"
ok 'it differs' test "$(line 1 here)" != "$(line 1 besides)"
finish
