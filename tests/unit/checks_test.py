#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rping's own race at its end is no failure, whatever order its outputs come in; all else is one.

usage: checks_test.py PROGRAMS_DIR TOOLS_DIR
"""
import sys

sys.path[1:1] = sys.argv[1:3]

import checks  # noqa: E402
import pair  # noqa: E402

RACE = "rdma_get_cm_event: Bad file descriptor\n"
PINGS = "".join(f"ping data: rdma-ping-{i}: ABC\n" for i in range(2))
SERVER = pair.Run(["rping", "-s"], 0, "server DISCONNECT EVENT...\n")


def passes(status, output):
    try:
        checks.check_pair("rping", ["-c", "-C", "2"], SERVER, pair.Run(["rping", "-c"], status, output))
    except pair.Failure:
        return False
    return True


CASES = {
    "no race": (0, PINGS, True),
    "race, a line at a time": (255, PINGS + RACE, True),
    "race, pings written at the exit": (255, "client DISCONNECT EVENT...\n" + RACE + PINGS, True),
    "race, a ping is missing": (255, RACE + PINGS.split("\n")[0] + "\n", False),
    "another failure": (255, PINGS + "cq completion failed status 12\n", False),
    "ended by a signal": (-11, PINGS + RACE, False),
}

for name, (status, output, wanted) in CASES.items():
    if passes(status, output) != wanted:
        sys.exit(f"{name}: {'failed' if wanted else 'passed'}")
