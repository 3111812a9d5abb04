#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two users of one host, and a third on another host.

usage: tests/programs/two_users.py BUILD

Who comes second to UDP port 4791 hears whose it is; with an address each, both have it, and each
gets what is sent to its own, from the other host and from each other.  Exit status: 0, 1 failed,
77 cannot run here.
"""

import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))

import hosts  # noqa: E402
import pair  # noqa: E402

SECOND = "10.77.0.3"  # of the first host, beside 10.77.0.1
LATEST = 20  # seconds


def weft(world, *args):
    """Runs a command of weft that must succeed."""
    end = world._end(world.start(world.prefix + [os.path.join(world.build, "weft")] + list(args)),
                     list(args), time.monotonic() + LATEST)
    if end.status != 0:
        raise pair.Failure(str(end))


def doctor(world):
    """What weft doctor says of the port."""
    end = world._end(world.start(world.prefix + [os.path.join(world.build, "weft"), "doctor"]),
                     ["doctor"], time.monotonic() + LATEST)
    return "".join(line for line in end.output.splitlines(True) if "udp port" in line)


def await_status(world, fits, what):
    deadline = time.monotonic() + LATEST
    while time.monotonic() < deadline:
        status = world.status()
        if status and fits(status["wire"]):
            return
        time.sleep(0.05)
    raise pair.Failure(f"{what}: {world.status()['wire']}")


def second_hears_of_first(build, host, address=None):
    with pair.World(build, True, {}, host) as first, pair.World(build, False, {}, host) as second:
        if address:
            weft(first, "up", "--address", address)
        server = first.start(first.weft_run(["rping", "-s", "-p", "7471"]))
        await_status(first, lambda wire: wire["state"] == "open", "the first has no port")
        other = second.start(second.weft_run(["rping", "-s", "-p", "7472"]))
        await_status(second, lambda wire: re.fullmatch(f"weftd .* of user {pair.NOBODY}",
                                                       wire.get("reason", "")),
                     "the second was not told of the first")
        first._abort(server, ["rping"])
        weft(first, "down")
        await_status(second, lambda wire: wire["state"] == "open", "the port stays the first's")
        second._abort(other, ["rping"])


def pingpong(user):
    for end in user.run_pair("ibv_rc_pingpong", ["-g", "1", "-c", "-n", "100"], LATEST):
        if end.status != 0:
            raise pair.Failure(str(end))


def each_gets_its_own(build, one, two):
    one.run("ip", "address", "add", f"{SECOND}/24", "dev", hosts.DEVICE)
    with pair.World(build, True, {}, one) as first, pair.World(build, False, {}, one) as second, \
            pair.World(build, False, {}, two) as client:
        for user, address in ((first, one.address), (second, SECOND)):
            weft(user, "up", "--address", address)
            if f"{address} is free" not in doctor(user):
                raise pair.Failure(f"doctor of who has {address} says:\n{doctor(user)}")
            user.client, user.address = client, address
        for user in (first, second, first):
            pingpong(user)
        # ... and each other, on one host
        for user, other in ((first, second), (second, first)):
            user.client = other
            pingpong(user)
        for user in (first, second):
            weft(user, "down")


def main():
    if len(sys.argv) != 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    try:
        if not pair.is_root():
            raise pair.CannotRun("not root, who alone is two users")
        with hosts.Hosts() as two:
            second_hears_of_first(sys.argv[1], two.one)
            second_hears_of_first(sys.argv[1], two.one, two.one.address)
            each_gets_its_own(sys.argv[1], two.one, two.two)
    except pair.CannotRun as e:
        print(e)
        return 77
    except pair.Failure as e:
        print(f"FAILED: {e}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
