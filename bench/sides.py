# SPDX-License-Identifier: BSD-3-Clause
"""The sides of a comparison: each measures one size once and gives microseconds or GB/s.

A latency is one way, as each program reports it; GB/s are 10^9 bytes a second.  The active
process runs on CPU 0, its peer on CPU 1.
"""

import re
import subprocess

import checks
import pair

ACTIVE, PEER = 0, 1  # CPUs
MIB = 1 << 20
UCX_TLS = "posix,cma,self"
RUN_US = 150000  # what a chunk should last; of a latency programs give the median
RATE_US = 5000  # of a rate only an average: some of these chunks lose no CPU
TIMEOUT = 60


def iterations(size, least=200, most=100000, lasts=RUN_US):
    """As many as take about that long, by a guess of 0.5 us and 10 GB/s."""
    return int(min(most, max(least, lasts / (0.5 + size / 10000))))


def iterations_of(unit, size):
    return iterations(size) if unit == "us" else iterations(size, most=5000, lasts=RATE_US)


def must_end_well(ends):
    for end in ends:
        if end.status != 0:
            raise pair.Failure(str(end))


class Weft:
    """A program of perftest, unmodified, on weft0.  column: of its table; -x etc. in extra."""

    def __init__(self, name, program, extra=()):
        self.name = name
        self.program = program
        self.extra = list(extra)
        self.needs = program
        self.is_weft = True

    def measure(self, world, size):
        unit = "GB/s" if self.program.endswith("_bw") else "us"
        args = ["-F", "-s", str(size), "-n", str(iterations_of(unit, size))] + self.extra
        ends = world.run_pair(self.program, args, TIMEOUT, (PEER, ACTIVE))
        must_end_well(ends)
        row = checks.table_rows(ends[1].output)[0]
        return row[4] if unit == "us" else row[3] * MIB / 1e9


class Rstream:
    """rstream of rdmacm-utils, unmodified: what one message of a stream over rsockets takes."""

    def __init__(self, name):
        self.name = name
        self.needs = "rstream"
        self.is_weft = True

    def measure(self, world, size):
        port = str(pair.free_port())
        args = ["-p", port, "-S", str(size), "-C", str(iterations(size)), "-I", "2"]
        ends = world.run_cm(["taskset", "-c", str(PEER), "rstream"] + args,
                            ["taskset", "-c", str(ACTIVE), "rstream", "-s", "127.0.0.1"] + args,
                            TIMEOUT)
        must_end_well(ends)
        return float(ends[1].output.split()[-1])


class Against:
    """A side of Weft's on another build: bench/run --against."""

    def __init__(self, side):
        self.side = side
        self.name = f"{side.name} before"
        self.needs = None
        self.is_weft = False
        self.world = None  # of that build

    def measure(self, world, size):
        return self.side.measure(self.world, size)


class Walk:
    """bench/walk: RDMA WRITEs of STEP bytes through a region of so many bytes."""

    STEP = 1 << 16

    def __init__(self, name, share="auto"):
        self.name = name
        self.share = share
        self.needs = None
        self.is_weft = True

    def measure(self, world, size):
        end = world.run(["env", "WEFT_SHARE=" + self.share, f"{world.build}/bench/walk", str(size),
                         str(self.STEP)], TIMEOUT)
        must_end_well([end])
        return size / float(end.output) / 1000


class Ucx:
    """ucx_perftest.  unit decides whether its latency or its bandwidth is read."""

    def __init__(self, name, test, unit, settings=("UCX_TLS=" + UCX_TLS,), extra=()):
        self.name = name
        self.test = test
        self.unit = unit
        self.settings = list(settings)
        self.extra = list(extra)
        self.needs = "ucx_perftest"
        self.is_weft = False

    def measure(self, world, size):
        port = str(pair.free_port())
        n = iterations_of(self.unit, size)
        tls = ["env", *self.settings, "UCX_WARN_UNUSED_ENV_VARS=n", "ucx_perftest"]
        client = tls + [world.address, "-p", port, "-t", self.test, "-s", str(size),
                        "-n", str(n), "-w", str(n // 10 + 1), "-f", "-v"] + self.extra
        ends = world.run_both(tls + ["-p", port], client, int(port), TIMEOUT, (PEER, ACTIVE))
        must_end_well(ends[1:])
        rows = re.findall(r"^ *\d+(?:,[\d.]+){7}$", ends[1].output, re.M)
        if not rows:
            raise pair.Failure(str(ends[1]))
        words = rows[-1].split(",")
        return float(words[1]) if self.unit == "us" else float(words[5]) * MIB / 1e9


class FiPingpong:
    """fi_pingpong over a provider of libfabric, by its kind of endpoint.  slower: so many times."""

    def __init__(self, name, unit, provider="shm", endpoint="rdm", slower=1):
        self.name = name
        self.unit = unit
        self.slower = slower
        self.over = ["-p", provider, "-e", endpoint]
        self.needs = "fi_pingpong"
        self.is_weft = False

    def measure(self, world, size):
        port = pair.free_port()
        count = iterations(size) // self.slower
        command = ["fi_pingpong", *self.over, "-I", str(count), "-S", str(size)]
        ends = world.run_both(command + ["-B", str(port)],
                              command + ["-P", str(port), world.address], port, TIMEOUT,
                              (PEER, ACTIVE))
        must_end_well(ends)
        rows = [line.split() for line in ends[1].output.split("\n")]
        rows = [row for row in rows if len(row) == 8 and row[6][:1].isdigit()]
        if not rows:
            raise pair.Failure(str(ends[1]))
        us = float(rows[-1][6])
        return us if self.unit == "us" else float(rows[-1][5]) / 1000


class Prim:
    """bench/prim: one copy by memcpy or by process_vm_writev or _readv."""

    def __init__(self, name, how, unit):
        self.name = name
        self.how = how
        self.unit = unit
        self.needs = None
        self.is_weft = False

    def measure(self, world, size):
        us = float(own_program(world, "prim", self.how, str(size)))
        return us if self.unit == "us" else size / us / 1000


class Lat:
    """A call of a library of ours, by its program of bench/, which prints a bandwidth first, or the
    median behind the average, as perftest does."""

    def __init__(self, name, what):
        self.name = name
        self.what = what
        self.needs = None
        self.is_weft = True

    def count(self, size):
        return iterations_of("GB/s" if self.what.endswith("_bw") else "us", size)

    def measure(self, world, size):
        out = own_program(world, self.program, self.what, str(size), str(self.count(size)))
        return float(out.split()[0 if self.what.endswith("_bw") else 1])


class Rpma(Lat):
    """bench/rpma_lat: what a call of librpma takes until its completion is there."""

    program = "rpma_lat"


class Ti(Lat):
    """bench/ti_lat: messages and RDMA writes of libweftti."""

    program = "ti_lat"

    def count(self, size):
        return super().count(size) // (10 if self.what == "event" else 1)


class Scif:
    """bench/scif_lat: a call of SCIF, or the same by something else.  spin: the bare round trip."""

    def __init__(self, name, what, unit="us"):
        self.name = name
        self.what = what
        self.unit = unit
        self.needs = None
        self.is_weft = what != "unix"

    def measure(self, world, size):
        count = iterations(size, 100) // (20 if self.what in ("unix", "register") else 1)
        us = float(own_program(world, "scif_lat", self.what, str(size), str(count)).split()[0])
        return us if self.unit == "us" else size / us / 1000


class Spin:
    """bench/spin: the round trip of a cache line, in microseconds."""

    name = "spin"
    needs = None
    is_weft = False

    def measure(self, world, size):
        return spin_ns(world) / 1000


def own_program(world, name, *args):
    """The output of a program of bench/, which pins itself."""
    out = subprocess.run([f"{world.build}/bench/{name}", *args], stdin=subprocess.DEVNULL,
                         env=world.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=TIMEOUT)
    if out.returncode == 77:
        raise pair.CannotRun(out.stdout.strip())
    if out.returncode != 0:
        raise pair.Failure(f"{name} {' '.join(args)}: {out.stdout}")
    return out.stdout


def spin_ns(world):
    return float(own_program(world, "spin"))
