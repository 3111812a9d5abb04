# SPDX-License-Identifier: BSD-3-Clause
"""The same subnet simulated by Weft and by Debian's ibsim: MADs and sweeps."""

import glob
import os
import re
import subprocess
import time

import pair

TIMEOUT = 120
SPEC = "ft2:8,4,2"
# Sweeps: nodes of the subnet, and what it is.
FABRICS = {22: SPEC, 702: "ft2:36,36,18", 2500: "ft3:20"}
PRELOAD = "/usr/lib/*/umad2sim/libumad2sim.so"


def call(world, command, env=None, **kwargs):
    """What a command prints; Failure if it does not end well."""
    done = subprocess.run(command, env=dict(world.env, **(env or {})), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=TIMEOUT, **kwargs)
    if done.returncode:
        raise pair.Failure(f"$ {' '.join(command)}\n{done.stdout}")
    return done.stdout


class Subnet:
    """A fabric of Weft's with a topology, while a measurement runs."""

    def __init__(self, world, spec):
        self.weft = os.path.join(world.build, "weft")
        self.world = world
        call(world, [self.weft, "up", "-F", "bench", "--sm", "off", spec])

    def run(self, command, env=None):
        return call(self.world, [self.weft, "run", "-F", "bench", "--node", "0", "--"] + command,
                    env)

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
        self.server = subprocess.Popen(["ibsim", "-s", "-N", "20000", "-P", "200000", net],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, cwd=world.root)
        for line in self.server.stdout:
            if "sim>" in line or "listening" in line.lower() or "Network simulator ready" in line:
                break

    def run(self, command, env=None):
        preload = glob.glob(PRELOAD)
        if not preload:
            raise pair.CannotRun("libumad2sim0 is not installed; run: tools/setup bench")
        return call(self.world, command, dict(env or {}, LD_PRELOAD=preload[0], SIM_HOST="H0"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.communicate()


class Umad:
    """bench/umad_lat: NodeInfo of the program's own port; size: how many are under way."""

    def __init__(self, name, subnet):
        self.name = name
        self.subnet = subnet
        self.is_weft = subnet is Subnet
        self.needs = None if self.is_weft else "ibsim"

    def measure(self, world, size):
        with self.subnet(world, SPEC) as net:
            out = net.run([f"{world.build}/bench/umad_lat", str(size), "20000"])
        return float(out.split()[-1])


class Sweep:
    """opensm -o, cold, to SUBNET UP: seconds; size: nodes of the subnet."""

    def __init__(self, name, subnet):
        self.name = name
        self.subnet = subnet
        self.is_weft = subnet is Subnet
        self.needs = "opensm" if self.is_weft else "ibsim"

    def measure(self, world, size):
        log = os.path.join(world.root, "opensm.log")
        own = {"OSM_CACHE_DIR": world.root, "OSM_TMP_DIR": world.root}
        with self.subnet(world, FABRICS[size]) as net:
            began = time.monotonic()
            net.run(["opensm", "-o", "-f", log], own)
            took = time.monotonic() - began
        with open(log, encoding="utf-8", errors="replace") as f:
            text = f.read()
        os.unlink(log)
        if "SUBNET UP" not in text or re.search(" ERR ", text):
            raise pair.Failure("opensm did not bring the subnet up without an error")
        return took
