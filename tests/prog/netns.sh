# SPDX-License-Identifier: BSD-3-Clause
# Sourced first by tests that need links of their own: runs the script again, with its arguments, in a
# network namespace.  Skips the test where there is none to be had, or one of the tools $needs is not.
if [ -z "$IN_NETNS" ]; then
	for tool in ip $needs; do
		command -v $tool >/dev/null || {
			echo "no $tool; run: tools/setup test"
			exit 77
		}
	done
	new='unshare --net'
	[ "$(id -u)" = 0 ] || new='unshare --map-root-user --net'
	$new ip link add v0 type veth peer name v1 2>/dev/null || {
		echo 'no network namespace with a veth to be had'
		exit 77
	}
	IN_NETNS=1 exec $new "$0" "$@"
fi
