# SPDX-License-Identifier: BSD-3-Clause
"""The same subnet simulated by Weft and by Debian's ibsim: MADs, sweeps, a cut link, memory."""

import contextlib
import glob
import os
import re
import subprocess
import tempfile
import time

import pair

TIMEOUT = 60
SWEEP_TIMEOUT = 300
SPEC = "ft2:8,4,2"
COUNT = 20000
# Subnets: how many nodes, and what they are.
FABRICS = {22: SPEC, 24: "ft2:8,4,4", 702: "ft2:36,36,18", 2500: "ft3:20", 13284: "ft3:36"}
# Rows of umad besides its own.  At 512 ibsim drops answers, for which its preload waits for ever.
WINDOWS = [2, 4, 8, 16, 64, 128, 256]
PRELOAD = "/usr/lib/*/umad2sim/libumad2sim.so"
# The link of the first leaf to the first spine; other spines lead to all hosts, too.
CUT = 'Unlink "S0"[5]'


def call(world, command, env=None, timeout=TIMEOUT):
    """
    What a command prints; Failure if it does not end well.  It runs in the world's directory: what
    ibsim's preload leaves behind goes with that.
    """
    try:
        done = subprocess.run(command, env=dict(world.env, **(env or {})), cwd=world.root,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as e:
        raise pair.Failure(f"$ {' '.join(command)}\nhas not ended in {timeout} s") from e
    if done.returncode:
        raise pair.Failure(f"$ {' '.join(command)}\n{done.stdout}")
    return done.stdout


def resident_mb(pid):
    """Memory of a process that is its own, shared memory that it touched included."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        rows = dict(line.split(":", 1) for line in f if line.startswith("Rss"))
    return sum(int(rows[name].split()[0]) for name in ("RssAnon", "RssShmem")) / 1024


class Subnet:
    """A fabric of Weft's with a topology, while a measurement runs."""

    def __init__(self, world, spec):
        self.weft = os.path.join(world.build, "weft")
        self.world = world
        out = call(world, [self.weft, "up", "-F", "bench", "--sm", "off", spec])
        self.pid = int(re.search(r"\(pid (\d+)\)", out).group(1))

    def wrap(self, command):
        """The command that runs another one on the first host, and the environment of that."""
        return [self.weft, "run", "-F", "bench", "--node", "0", "--"] + command, {}

    def run(self, command, env=None, timeout=TIMEOUT):
        command, own = self.wrap(command)
        return call(self.world, command, dict(env or {}, **own), timeout)

    def console(self, line):
        call(self.world, [self.weft, "topo", "-F", "bench", "--do", line])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        call(self.world, [self.weft, "down", "-F", "bench"])


class Ibsim:
    """ibsim on the same netlist; programs reach it by its own preload."""

    def __init__(self, world, spec):
        self.world = world
        net = os.path.join(world.root, "net")
        with open(net, "w", encoding="ascii") as f:
            f.write(call(world, [os.path.join(world.build, "weft"), "topo", "--net", spec]))
        self.server = subprocess.Popen(["ibsim", "-s", "-N", "20000", "-S", "3000", "-P", "200000",
                                        net], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, cwd=world.root)
        self.pid = self.server.pid
        for line in self.server.stdout:
            if "sim>" in line or "listening" in line.lower() or "Network simulator ready" in line:
                break

    def wrap(self, command):
        preload = glob.glob(PRELOAD)
        if not preload:
            raise pair.CannotRun("libumad2sim0 is not installed; run: tools/setup bench")
        return command, {"LD_PRELOAD": preload[0], "SIM_HOST": "H0"}

    def run(self, command, env=None, timeout=TIMEOUT):
        command, own = self.wrap(command)
        return call(self.world, command, dict(env or {}, **own), timeout)

    def console(self, line):
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.communicate()


class Side:
    """One of the two simulators; `subnet` is its class."""

    def __init__(self, name, subnet, needs):
        self.name = name
        self.subnet = subnet
        self.is_weft = subnet is Subnet
        self.needs = needs if self.is_weft else "ibsim"


class Umad(Side):
    """
    bench/umad_lat: NodeInfo of the program's own port; size: how many are under way; idle: other
    files that it has open.
    """

    def __init__(self, name, subnet, idle=0):
        super().__init__(name, subnet, None)
        self.idle = idle

    def measure(self, world, size):
        with self.subnet(world, SPEC) as net:
            out = net.run([f"{world.build}/bench/umad_lat", str(size), str(COUNT), str(self.idle)])
        return float(out.split()[-1])


def opensm_env(world):
    """opensm's files go where none of another subnet are, whose neighbours it would miss in this one."""
    return {"OSM_CACHE_DIR": tempfile.mkdtemp(dir=world.root), "OSM_TMP_DIR": world.root}


def read_log(log):
    with open(log, encoding="utf-8", errors="replace") as f:
        return f.read()


def sweep(world, net, options):
    """opensm -o, and how many seconds it took."""
    log = os.path.join(world.root, "opensm.log")
    began = time.monotonic()
    net.run(["opensm", "-o", "-f", log] + options, opensm_env(world), SWEEP_TIMEOUT)
    took = time.monotonic() - began
    text = read_log(log)
    os.unlink(log)
    errors = re.findall("^.* ERR .*$", text, re.M)
    if "SUBNET UP" not in text or errors:
        raise pair.Failure("\n".join(["opensm did not bring the subnet up without an error"] +
                                     errors[:3]))
    return took


class Sweep(Side):
    """opensm -o, cold, to SUBNET UP: seconds; size: nodes of the subnet."""

    def __init__(self, name, subnet, options=None):
        super().__init__(name, subnet, "opensm")
        self.options = options or []

    def measure(self, world, size):
        with self.subnet(world, FABRICS[size]) as net:
            return sweep(world, net, self.options)


class Memory(Side):
    """What the simulator has in memory when opensm has configured everything; MB."""

    def __init__(self, name, subnet):
        super().__init__(name, subnet, "opensm")

    def measure(self, world, size):
        with self.subnet(world, FABRICS[size]) as net:
            sweep(world, net, [])
            return resident_mb(net.pid)


class Manager:
    """An opensm that stays, and its log."""

    def __init__(self, world, net):
        self.log = os.path.join(world.root, "manager.log")
        options = os.path.join(world.root, "manager.conf")
        with open(options, "w", encoding="ascii") as f:
            f.write("force_log_flush TRUE\n")
        command, env = net.wrap(["opensm", "-F", options, "-f", self.log])
        self.process = subprocess.Popen(command, env=dict(world.env, **env, **opensm_env(world)),
                                        cwd=world.root, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def count(self, text):
        return read_log(self.log).count(text) if os.path.exists(self.log) else 0

    def wait(self, text, times):
        """Until the log has the text so often."""
        end = time.monotonic() + TIMEOUT
        while self.count(text) < times:
            if time.monotonic() > end or self.process.poll() is not None:
                raise pair.Failure(f"opensm did not say {text!r} {times} times")
            time.sleep(0.0002)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.log)


def log_times(text, what):
    """When opensm said so: seconds of the day, by the stamps of its log."""
    stamps = re.findall(r"^\w+ +\d+ (\d+):(\d+):(\d+) (\d+) .*" + re.escape(what), text, re.M)
    return [int(h) * 3600 + int(m) * 60 + int(s) + int(us) / 1e6 for h, m, s, us in stamps]


class LinkDown(Side):
    """
    Milliseconds from trap 128 of a link that was cut to SUBNET UP with new routes, by opensm's own
    log; size: nodes of the subnet.
    """

    def __init__(self, name, subnet):
        super().__init__(name, subnet, "opensm")

    def measure(self, world, size):
        with self.subnet(world, FABRICS[size]) as net, Manager(world, net) as manager:
            manager.wait("SUBNET UP", 1)
            net.console(CUT)
            manager.wait("SUBNET UP", 2)
            text = read_log(manager.log)
        trap, up = log_times(text, "num:128"), log_times(text, "SUBNET UP")
        if not trap:
            raise pair.Failure("opensm logged no trap 128")
        return (min(t for t in up if t >= trap[0]) - trap[0]) * 1000
