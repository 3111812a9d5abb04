# SPDX-License-Identifier: BSD-3-Clause
"""Runs unmodified RDMA programs on Weft: alone, or as server and client of one exchange.

Each World has its own runtime directory, and so its own weftd, and ends all it started.
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import procs

PORTS = range(21000, 29000)
LISTEN_TIME = 20  # seconds for a server to listen
NOBODY = 65534
NO_RIGHTS = ["--bounding-set=-all", "--inh-caps=-all"]
TCP_LISTEN = "0A"


class Failure(Exception):
    """What went wrong, for the reader of a test log."""


class CannotRun(Exception):
    """Why this cannot run here."""


reserved = []  # a socket for each port that we gave out, until we end


def reserve(port):
    """Keeps other runs off a port until we end; False: another has it."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        name.bind(f"\0weft-test-port-{port}")
    except OSError:
        name.close()
        return False
    reserved.append(name)
    return True


def free_port():
    """A TCP port of our range on which nobody listens, and that no other run was given."""
    while True:
        port = random.choice(PORTS)
        if not reserve(port):
            continue
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as s:
            try:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                s.bind(("::", port))
                return port
            except OSError:
                pass
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            try:
                s.bind(("0.0.0.0", port))
                return port
            except OSError:
                continue


def is_root():
    """Whether we are, and not just in a user namespace of our own."""
    with open("/proc/self/uid_map") as f:
        return os.getuid() == 0 and f.read().split()[2] != "1"


def has_ipv6():
    """Whether this machine has the address ::1."""
    try:
        with open("/proc/net/if_inet6") as f:
            return any(line.startswith("0" * 31 + "1 ") for line in f)
    except OSError:
        return False


def is_listening(pid, port):
    """Whether anybody listens on that port of the network that a process is in."""
    wanted = f"{port:04X}"
    for table in (f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6"):
        try:
            with open(table) as f:
                rows = [line.split() for line in f.readlines()[1:]]
        except OSError:
            continue
        if any(r[1].endswith(":" + wanted) and r[3] == TCP_LISTEN for r in rows):
            return True
    return False


def sanitizer_runtime(build):
    """The sanitizer library that an unmodified program must load first, or None."""
    out = subprocess.run(["ldd", os.path.join(build, "lib", "libibverbs.so.1")],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in out.stdout.split("\n"):
        words = line.split()
        if len(words) > 2 and words[0].startswith(("libasan.so", "libtsan.so")):
            return words[2]
    return None


class Run:
    """What a program that has ended gave."""

    def __init__(self, command, status, output):
        self.command = command
        self.status = status
        self.output = output

    def __str__(self):
        return f"$ {' '.join(self.command)}\n{self.output}(exit status {self.status})"


class World:
    """A runtime directory with its weftd.  as_user: everything runs as an unprivileged user.

    host: of hosts.Hosts, in which all runs.  client: where the clients of servers here run; another
    world on another host, if it is set to that.
    """

    def __init__(self, build, as_user=False, env=None, host=None):
        self.host = host
        self.enter = host.enter if host else []
        self.address = host.address if host else "127.0.0.1"
        self.client = self
        self.build = os.path.abspath(build)
        for name in ("weft", "weftd", "lib/libibverbs.so.1"):
            if not os.path.exists(os.path.join(self.build, name)):
                raise Failure(f"{self.build}/{name} is not there; run make first")
        self.prefix = []
        self.terminal = None
        self.root = tempfile.mkdtemp(prefix="weft-")
        self.runtime = os.path.join(self.root, "run")
        os.mkdir(self.runtime, 0o700)
        if as_user and is_root():
            self._leave_root()
        elif as_user and os.getuid() == 0:
            self.prefix = ["setpriv"] + NO_RIGHTS
        self.env = dict(os.environ, WEFT_RUNTIME_DIR=self.runtime, HOME=self.root)
        if not host:
            self.env.setdefault("WEFT_WIRE", "never")  # UDP port 4791 is one for all
        self.env.update(env or {})
        self.env.pop("WEFT_FABRIC", None)
        self.env.pop("WEFT_NODE", None)
        preload = sanitizer_runtime(self.build)
        if preload:
            old = self.env.get("LD_PRELOAD")
            self.env["LD_PRELOAD"] = f"{preload}:{old}" if old else preload
            self.env["ASAN_OPTIONS"] = "detect_leaks=0:" + self.env.get("ASAN_OPTIONS", "")
        procs.adopt_orphans()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        procs.end_children()
        for fd in self.terminal or ():
            os.close(fd)
        shutil.rmtree(self.root, ignore_errors=True)

    def _leave_root(self):
        """A copy of what runs, where that user can read it, whatever lies above the build."""
        copy = os.path.join(self.root, "build")
        os.chmod(self.root, 0o755)
        os.makedirs(os.path.join(copy, "lib"))
        for name in ("weft", "weftd"):
            shutil.copy2(os.path.join(self.build, name), copy)
        for name in os.listdir(os.path.join(self.build, "lib")):
            path = os.path.join(self.build, "lib", name)
            if ".so" in name and os.path.isfile(path):
                shutil.copy2(path, os.path.join(copy, "lib"), follow_symlinks=False)
        os.chown(self.runtime, NOBODY, NOBODY)
        self.build = copy
        self.prefix = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY),
                       "--clear-groups"] + NO_RIGHTS

    def weft_run(self, command):
        return self.prefix + [os.path.join(self.build, "weft"), "run", "--"] + command

    def _stdin(self, command):
        """ucx_perftest that was built with MPI wants mpirun, but not at a terminal."""
        if "ucx_perftest" not in command:
            return subprocess.DEVNULL
        self.terminal = self.terminal or os.openpty()
        return self.terminal[1]

    def start(self, command, cpu=None):
        """Starts a command as it is, in this world's environment, pinned to a CPU if wanted."""
        if cpu is not None:
            command = ["taskset", "-c", str(cpu)] + command
        try:
            return subprocess.Popen(self.enter + command, env=self.env, stdin=self._stdin(command),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True, errors="replace", start_new_session=True)
        except FileNotFoundError as e:
            raise Failure(f"{e.filename} is not there; run make first") from None

    def run(self, command, timeout=60):
        """Runs one program on Weft to its end."""
        return self._end(self.start(self.weft_run(command)), command, time.monotonic() + timeout)

    def run_pair(self, program, args, timeout=60, cpus=(None, None)):
        """Runs a server and its client on Weft; gives both ends as Run."""
        server_command = [program, "-p", str(free_port())] + args
        return self.run_both(self.weft_run(server_command),
                             self.client.weft_run(server_command + [self.address]),
                             int(server_command[2]), timeout, cpus)

    def run_cm(self, server_command, client_command, timeout=60, stays=False):
        """The same for commands that meet through rdma_cm.  stays: the server never ends."""
        deadline = time.monotonic() + timeout
        server = self.start(self.weft_run(server_command))
        self._wait_for(server, server_command, lambda s: s["connections"]["listeners"], "listen")
        client_end = self._run_client(client_command, deadline)
        return self._end_server(server, server_command, deadline, client_end, stays), client_end

    def _run_client(self, command, deadline):
        return self._end(self.client.start(self.client.weft_run(command)), command, deadline)

    def _end_server(self, server, command, deadline, client_end, stays):
        """stays: it may not end by itself and is ended."""
        if stays:
            if server.poll() is not None:
                end = self._end(server, command, deadline)
                if end.status != 0:
                    raise Failure(f"the server failed: {end}")
                return end
            return Run(command, 0, self._abort(server, command).output)
        if client_end.status != 0:
            deadline = time.monotonic() + 5
        try:
            return self._end(server, command, deadline)
        except Failure as e:
            raise Failure(f"{e}\nclient: {client_end}") from None

    def run_tcp(self, program, server_args, client_args, timeout=60):
        """A server that stays and takes its clients by TCP, at the port of -lp."""
        deadline = time.monotonic() + timeout
        port = free_port()
        server_command = [program, "-lp", str(port)] + server_args
        client_command = [program, "-lp", str(port)] + client_args
        server = self.start(self.weft_run(server_command))
        wait_for_listen(server, server_command, port)
        client_end = self._run_client(client_command, deadline)
        return self._end_server(server, server_command, deadline, client_end, True), client_end

    def run_group(self, receiver_command, sender_command, timeout=60):
        """A receiver and, once it is a member of its multicast group, a sender."""
        deadline = time.monotonic() + timeout
        receiver = self.start(self.weft_run(receiver_command))
        self._wait_for(receiver, receiver_command, lambda s: s["counts"]["members"], "join")
        sender_end = self._run_client(sender_command, deadline)
        return self._end_server(receiver, receiver_command, deadline, sender_end, False), sender_end

    def status(self):
        """What weft status --json says, or None where no weftd runs."""
        command = self.prefix + [os.path.join(self.build, "weft"), "status", "--json"]
        out = subprocess.run(self.enter + command, env=self.env, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True).stdout
        return json.loads(out) if out else None

    def _wait_for(self, server, command, condition, what):
        """Until the status of weftd fulfils a condition."""
        deadline = time.monotonic() + LISTEN_TIME
        while time.monotonic() < deadline:
            status = self.status()
            if status and condition(status):
                return
            if server.poll() is not None:
                output, _ = server.communicate()
                raise Failure(f"server ended before it could {what}: "
                              f"{Run(command, server.returncode, output)}")
            time.sleep(0.05)
        raise Failure(f"server did not {what}: {self._abort(server, command)}")

    def run_both(self, server_command, client_command, port, timeout=60, cpus=(None, None)):
        """The same for any two commands of which the server listens on a TCP port."""
        deadline = time.monotonic() + timeout
        server = self.start(server_command, cpus[0])
        wait_for_listen(server, server_command, port)
        client = self.client.start(client_command, cpus[1])
        try:
            client_end = self._end(client, client_command, deadline)
        except Failure as e:
            raise Failure(f"{e}\nserver: {self._abort(server, server_command)}") from None
        if client_end.status != 0:  # the server may wait for it for ever
            deadline = min(deadline, time.monotonic() + 5)
        try:
            server_end = self._end(server, server_command, deadline)
        except Failure as e:
            raise Failure(f"{e}\nclient: {client_end}") from None
        return server_end, client_end

    def _end(self, process, command, deadline):
        try:
            output, _ = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failure(f"did not end in time: {self._abort(process, command)}") from None
        return Run(command, process.returncode, output)

    @staticmethod
    def _abort(process, command):
        """Kills a program that is still running, and what it started."""
        for pid in procs.children(process.pid) + [process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            output, _ = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:  # somebody else holds its stdout
            output = "(no output: its stdout is still held open)\n"
        return Run(command, process.returncode, output)


def wait_for_listen(server, command, port):
    deadline = time.monotonic() + LISTEN_TIME
    while not is_listening(server.pid, port):
        if server.poll() is not None:
            output, _ = server.communicate()
            raise Failure(f"server ended before it listened: "
                          f"{Run(command, server.returncode, output)}")
        if time.monotonic() > deadline:
            raise Failure(f"server did not listen on port {port}: "
                          f"{World._abort(server, command)}")
        time.sleep(0.01)
