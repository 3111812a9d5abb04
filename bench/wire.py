# SPDX-License-Identifier: BSD-3-Clause
"""What is measured between two hosts: where, and beside what.

The server is on host two and CPU 1, the client on host one and CPU 0.
"""

import contextlib
import json

import hosts
import pair
from sides import ACTIVE, PEER, TIMEOUT, FiPingpong, Ucx, iterations, must_end_well

MTU = 1500  # for small messages
BULK = 65536  # bytes of a large one
BULKS = 3000  # of them for Weft: with loss on a small MTU they take seconds
FEW = ["-n", str(BULKS), "-w", "300"]  # the same for ucx_perftest
GID = ["-x", "1"]  # of the link's address, for perftest
UDP_US = 5  # a guess of one way


class Wire:
    """A pair of hosts for each MTU that is asked for, with a world on both."""

    def __init__(self, build):
        self.build = build
        self.servers = {}
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.env = self.at(MTU).env
        return self

    def __exit__(self, *exc):
        self.stack.close()

    def at(self, mtu):
        """The server's world where the link has that MTU."""
        if mtu not in self.servers:
            two = self.stack.enter_context(hosts.Hosts(mtu))
            server = self.stack.enter_context(pair.World(self.build, host=two.two))
            server.client = self.stack.enter_context(pair.World(self.build, host=two.one))
            self.servers[mtu] = server
        return self.servers[mtu]


class Between:
    """A side that is measured in the world of a host."""

    def __init__(self, side):
        self.side = side
        self.name = side.name
        self.needs = side.needs
        self.is_weft = side.is_weft


class Small(Between):
    """Messages of that size."""

    def measure(self, wire, size):
        return self.side.measure(wire.at(MTU), size)


class Bulk(Between):
    """Large messages where the link has that MTU."""

    def measure(self, wire, mtu):
        return self.side.measure(wire.at(mtu), BULK)


class Lossy(Between):
    """The same with faults made on both hosts (WEFT_FAULT)."""

    def __init__(self, side, fault):
        super().__init__(side)
        self.name = f"{side.name}, {fault}"
        self.fault = fault
        self.is_weft = False

    def measure(self, wire, size):
        server = wire.at(size)
        for world in (server, server.client):
            world.env["WEFT_FAULT"] = self.fault
        try:
            return self.side.measure(wire, size)
        finally:
            for world in (server, server.client):
                del world.env["WEFT_FAULT"]


class UdpPong:
    """bench/udp_pong: datagrams to and fro."""

    needs = None
    is_weft = False

    def __init__(self, name, how):
        self.name = name
        self.how = how

    def measure(self, world, size):
        port = pair.free_port()
        program = [f"{world.build}/bench/udp_pong", self.how]
        count = iterations(size) // UDP_US
        client = program + ["client", world.address, str(port), str(size), str(count)]
        ends = world.run_both(program + ["server", str(port)], client, port, TIMEOUT,
                              (PEER, ACTIVE))
        must_end_well(ends)
        return float(ends[1].output.split()[0])


class UdpRoce:
    """bench/udp_roce: a message and an ACK by a socket like ours, without an engine."""

    name = "udp roce"
    needs = None
    is_weft = False

    def measure(self, world, size):
        port = str(pair.free_port())
        program = [f"{world.build}/bench/udp_roce"]
        client = ["client", port, world.client.address, world.address, str(size),
                  str(iterations(size) // UDP_US)]
        ends = world.run_both(program + ["server", port, world.address], program + client,
                              int(port), TIMEOUT, (PEER, ACTIVE))
        must_end_well(ends)
        return float(ends[1].output.split()[0])


def datagrams(how):
    """What datagrams cost that are waited for like that; RoCE's own where both ends spin."""
    return [UdpPong(f"udp {how}", how)] + ([UdpRoce()] if how == "spin" else [])


class Iperf:
    """iperf3: one stream of TCP for a second, in GB/s."""

    name = "iperf3"
    needs = "iperf3"
    is_weft = False

    def measure(self, world, size):
        port = pair.free_port()
        client = ["iperf3", "-c", world.address, "-p", str(port), "-t", "1", "-l", str(size), "-J"]
        ends = world.run_both(["iperf3", "-s", "-1", "-p", str(port)], client, port, TIMEOUT,
                              (PEER, ACTIVE))
        must_end_well(ends)
        return json.loads(ends[1].output)["end"]["sum_received"]["bits_per_second"] / 8e9


def ucx(test, unit, extra=()):
    return Ucx("ucx_tcp", test, unit, ("UCX_TLS=tcp,self", f"UCX_NET_DEVICES={hosts.DEVICE}"), extra)


def fabrics(unit):
    """libfabric over TCP, and with its own reliability over UDP, which at times hangs in long runs."""
    return [FiPingpong("fi_tcp", unit, "tcp", "msg", 20),
            FiPingpong("fi_udp_rxd", unit, "udp;ofi_rxd", "rdm", 200)]
