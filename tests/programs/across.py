# SPDX-License-Identifier: BSD-3-Clause
"""Cases of cases.table between two hosts: the server on one, its client on the other.

A link is written MTU or MTU-v6: with -v6 the queue pairs of kind pair use the hosts' IPv6 addresses.
"""

import contextlib
import copy
import re

import checks
import hosts
import pair

LINK = re.compile(r"(\d+)(-v6)?")
KINDS = ("pair", "cm", "cm-stays", "cm-preload", "tcp", "tcp-stays", "group", "copy-stays",
         "copy-preload")
GIVEN_ADDRESS = {"rdma_client": "-s", "rdma_xclient": "-s"}  # without it, their own host
UDP_HEADERS = 28  # bytes at least of a packet that are not its payload


def why_not(case, link):
    """Why a case does not run on a link, or None."""
    if case.kind not in KINDS:
        return "it has no peer"
    if "xrc" in case.name or "xsrq" in case.name:
        return "XRC does not leave a machine"
    if case.program == "ib_send_bw" and ("UC" in case.args or "UD" in case.args):
        return "it sends more than its receiver takes, and what is too much gets lost"
    if "-g" in case.args and "-M" not in case.args and case.program.startswith("ib_send"):
        return "its groups are of scope ff01, which does not leave a machine"
    if link.endswith("-v6") and case.kind != "pair":
        return "what it is given says which addresses it uses"
    if link.endswith("-v6") and case.program == "ucx_perftest":
        return "it takes the GID of an IPv4 address"
    return None


def addressed(args, own, server):
    """Arguments in which this machine's address for itself stood for the other end's."""
    out = []
    for i, arg in enumerate(args):
        host = own if i and args[i - 1] == "-b" else server
        if arg == "::1":
            arg = host.address6
        out.append(arg.replace("127.0.0.1", host.address))
    return out


class Link:
    """Two hosts, and a world on each: server, and server.client."""

    def __init__(self, word, build, as_user, env):
        found = LINK.fullmatch(word)
        if not found:
            raise pair.Failure(f"{word} is no link; write MTU or MTU-v6")
        self.v6 = bool(found[2])
        with contextlib.ExitStack() as stack:
            two = stack.enter_context(hosts.Hosts(int(found[1])))
            self.hosts = (two.one, two.two)
            self.server, self.server.client = [
                stack.enter_context(pair.World(build, as_user, env, host)) for host in self.hosts]
            self.stack = stack.pop_all()
        self.before = [host.bytes_sent() for host in self.hosts]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stack.close()

    def fit(self, case):
        """The case with the addresses of this link."""
        fitted = copy.copy(case)
        one, two = self.hosts
        fitted.server_args = addressed(case.server_args, one, one)
        fitted.args = addressed(case.args, two, one)
        if case.program_2 in GIVEN_ADDRESS:
            fitted.args += [GIVEN_ADDRESS[case.program_2], one.address]
        if case.kind == "group" and not case.server_args:
            fitted.server_args = addressed(case.args, one, one)
        if self.v6:
            self._choose_gid(fitted)
        return fitted

    def _choose_gid(self, case):
        option, index = "-x" if case.program.startswith("ib_") else "-g", self._gid_index()
        args = list(case.args)
        if option in args:
            at = args.index(option)
            del args[at:at + 2]
        case.args = args + [option, index]

    def _gid_index(self):
        """That of the server's IPv6 address; the other host has its own at the same place."""
        out = self.server.run(["ibv_devinfo", "-v"]).output
        found = re.search(rf"GID\[ *(\d+)\]:\s+{re.escape(self.hosts[0].address6)}\b", out)
        if not found:
            raise pair.Failure(f"no GID of {self.hosts[0].address6}: {out}")
        return found[1]

    def check_moved(self, case):
        """What the case was to move has gone by the link."""
        moved = [host.bytes_sent() - before for host, before in zip(self.hosts, self.before)]
        least = checks.least_moved(case.program, case.args)
        if min(moved) < UDP_HEADERS or sum(moved) < least:
            raise pair.Failure(f"the hosts sent {moved[0]} and {moved[1]} bytes by their link, "
                               f"of {least} at least")
