# SPDX-License-Identifier: BSD-3-Clause
"""A machine with the kernel's rdma_rxe: a QEMU guest, joined to a host (tools/hosts.py) by a tap device."""

import json
import os
import queue
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import hosts
import pair

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TAP = "tap0"
START_TIME = 200  # seconds until the guest can be asked: without KVM, beside a compiler
ASK_TIME = 20


class Command:
    """A program that runs in the guest."""

    def __init__(self, guest, command):
        self.guest = guest
        self.command = command
        self.number, self.answers = guest.send(start=command)
        self.ended = None

    def wait(self, timeout):
        """What it gave, or None if it still runs after that time."""
        if not self.ended:
            try:
                answer = self.answers.get(timeout=max(0.01, timeout))
            except queue.Empty:
                return None
            self.ended = pair.Run(["guest:"] + self.command, answer["status"], answer["output"])
        return self.ended

    def abort(self):
        """Kills it."""
        self.guest.ask(end=self.number)
        return self.wait(ASK_TIME) or pair.Run(self.command, None, "(does not end)\n")


class Guest:
    """host: of hosts.Host, gets a tap device with its addresses; address: of the guest."""

    def __init__(self, kernel, host):
        self.address, self.address6 = "10.77.1.2", "fd77:1::2"
        self.host_address, self.host_address6 = "10.77.1.1", "fd77:1::1"
        self.host = host
        self.folder = tempfile.mkdtemp(prefix="weft-guest-")
        self.answers = {0: queue.Queue()}
        self.lock = threading.Lock()
        self.number = 0
        self._make_tap()
        self._start(kernel)
        self.await_link()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        try:
            self.send(leave=True)
            self.qemu.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.qemu.terminate()
            self.qemu.wait()
        self.socket.close()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make_tap(self):
        run = self.host.run
        run("ip", "tuntap", "add", TAP, "mode", "tap")
        run("ip", "address", "add", f"{self.host_address}/24", "dev", TAP)
        run("ip", "address", "add", f"{self.host_address6}/64", "dev", TAP, "nodad")
        run("ip", "link", "set", TAP, "up")

    def _start(self, kernel):
        path = os.path.join(self.folder, "channel")
        self.log = open(os.path.join(self.folder, "log"), "w+", errors="replace")
        self.qemu = subprocess.Popen(
            self.host.enter + [os.path.join(ROOT, "tools", "guest"), "--cpus", "1", "--tap", TAP,
                               "--channel", path, kernel, "/bin/sh",
                               os.path.join(HERE, "up.sh"), self.address, self.address6],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        self.socket = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + START_TIME
        # Not to a QEMU that is given up, because KVM does not run the kernel.
        while not re.search("^guest: (by|without) KVM", self.console(), re.M):
            self._may_wait(deadline)
        while self.socket.connect_ex(path) != 0:
            self._may_wait(deadline)
        threading.Thread(target=self._listen, daemon=True).start()
        while not self._has_answer(0):
            self._may_wait(deadline)

    def _may_wait(self, deadline):
        if self.qemu.poll() is not None or time.monotonic() > deadline:
            raise pair.Failure(f"the guest does not come up:\n{self.console()}")
        time.sleep(0.1)

    def _has_answer(self, number):
        return not self.answers[number].empty()

    def console(self):
        self.log.flush()
        with open(self.log.name, errors="replace") as f:
            return f.read()

    def _listen(self):
        with self.socket.makefile("r") as lines:
            for line in lines:
                answer = json.loads(line)
                self.answers[answer["id"]].put(answer)

    def send(self, **what):
        """Gives the number of the request, and the queue in which its answer will be."""
        with self.lock:
            self.number += 1
            number = self.number
            answers = self.answers[number] = queue.Queue()
            self.socket.sendall(json.dumps(dict(what, id=number)).encode() + b"\n")
        return number, answers

    def ask(self, **what):
        try:
            return self.send(**what)[1].get(timeout=ASK_TIME)
        except queue.Empty:
            raise pair.Failure(f"the guest does not answer:\n{self.console()}") from None

    def run(self, *command, timeout=60):
        """Runs a command to its end."""
        end = Command(self, list(command))
        return end.wait(timeout) or end.abort()

    def must(self, *command):
        """The same for one that has to succeed; its output."""
        end = self.run(*command)
        if end.status != 0:
            raise pair.Failure(str(end))
        return end.output

    def await_link(self):
        """Until packets get through both ways.  The kernel's own link-local addresses are looked for
        on the link first, a second and more; and rdma_rxe cannot wait long for a neighbour."""
        self.host.await_link(TAP, self.address, self.address6)
        self.must(hosts.AWAIT_LINK, "eth0", self.host_address, self.host_address6)

    def listens(self, port):
        return self.ask(listens=port)["is"]

    def has_listener(self):
        """Whether an id of rdma_cm listens.  Twice: it says so a moment before requests find it."""
        return all("LISTEN" in self.must("rdma", "resource", "show", "cm_id") for _ in range(2))

    def has_member(self):
        """Whether somebody joined a multicast group of IPv4."""
        return "inet  239." in self.must("ip", "maddress", "show", "dev", "eth0")
