# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts on one machine: network namespaces of their own, joined by a veth pair.

Whoever is not root calls enter_user_namespace() first.  A namespace lives as long as its Hosts object or
a process in it; nothing has a name outside, and nothing needs to be taken away.
"""

import os
import subprocess
import sys

import pair

DEVICE = "veth0"  # of both hosts
AWAIT_LINK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "await-link")
READY = "mount -t sysfs sysfs /sys 2>/dev/null; ip link set lo up && echo ready && exec cat"


def enter_user_namespace():
    """Starts this program again as root of a user namespace, unless it is root already."""
    if os.getuid() != 0:
        os.execvp("unshare", ["unshare", "--map-root-user", "--", sys.executable] + sys.argv)


class Host:
    """A network namespace with its own /sys.  enter: what to put before a command that runs in it."""

    def __init__(self, number):
        self.address = f"10.77.0.{number}"
        self.address6 = f"fd77::{number}"
        self.link_local = f"fe80::77:{number}"
        with subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", READY],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as holder:
            said = holder.stdout.readline().strip()
            if said == "ready":
                self.fds = [os.open(f"/proc/{holder.pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
                            for kind in ("net", "mnt")]
            holder.stdin.close()
        if said != "ready":
            raise pair.CannotRun(f"no network namespace to be had: {said}")
        self.paths = [f"/proc/{os.getpid()}/fd/{fd}" for fd in self.fds]
        self.enter = ["nsenter", f"--net={self.paths[0]}", f"--mount={self.paths[1]}", "--wd=."]

    def close(self):
        for fd in self.fds:
            os.close(fd)

    def run(self, *command):
        """The output of a command in this host that must succeed."""
        out = subprocess.run(self.enter + list(command), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if out.returncode != 0:
            raise pair.CannotRun(f"{' '.join(command)}: {out.stdout.strip()}")
        return out.stdout

    def await_link(self, device, *addresses):
        """Until packets get through: to these neighbours, and from all of our addresses."""
        out = subprocess.run(self.enter + [AWAIT_LINK, device, *addresses],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        if out.returncode != 0:
            raise pair.Failure(out.stdout.strip())

    def bytes_sent(self):
        """What has left this host by its link."""
        return int(self.run("cat", f"/sys/class/net/{DEVICE}/statistics/tx_bytes"))


class Hosts:
    """Hosts one and two with an IPv4 and an IPv6 address each.  mtu: of their link."""

    def __init__(self, mtu=1500):
        self.one = Host(1)
        try:
            self.two = Host(2)
        except pair.CannotRun:
            self.one.close()
            raise
        self._join(mtu)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.one.close()
        self.two.close()

    def _join(self, mtu):
        self.one.run("ip", "link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns",
                     self.two.paths[0])
        for host in (self.one, self.two):
            host.run("ip", "address", "add", f"{host.address}/24", "dev", DEVICE)
            host.run("ip", "address", "add", f"{host.address6}/64", "dev", DEVICE, "nodad")
            # The kernel's own link-local address would come a second later.
            host.run("ip", "link", "set", DEVICE, "addrgenmode", "none", "mtu", str(mtu), "up")
            host.run("ip", "address", "add", f"{host.link_local}/64", "dev", DEVICE, "nodad")
        for host, peer in ((self.one, self.two), (self.two, self.one)):
            host.await_link(DEVICE, peer.address, peer.address6, peer.link_local)
