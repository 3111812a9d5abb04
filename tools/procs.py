# SPDX-License-Identifier: BSD-3-Clause
"""Processes that outlive their parent, found and ended by pid."""

import ctypes
import os
import signal
import threading
import time

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """Makes every orphaned descendant a child of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def parent_and_state(pid):
    """Parent pid and state letter of a process, or None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            after_name = f.read().rpartition(")")[2].split()
    except (OSError, ProcessLookupError):
        return None
    return int(after_name[1]), after_name[0]


def children(parent=None):
    """Pids of the live children of a process, by default our own."""
    parent = parent or os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        who = parent_and_state(int(name))
        if who and who[0] == parent and who[1] != "Z":
            found.append(int(name))
    return found


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


class Reaper(threading.Thread):
    """Collects adopted orphans as they end, as init would: a zombie still has its pid.

    Those in keep are left to whoever started them.
    """

    def __init__(self, keep):
        super().__init__(daemon=True)
        self.keep = keep
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.wait(0.01):
            while self.reap_one():
                pass

    def reap_one(self):
        """False: none has ended, or the first that has is to be kept."""
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if not ended or ended.si_pid in self.keep:
                return False
            os.waitpid(ended.si_pid, os.WNOHANG)
        except ChildProcessError:
            return False
        return True

    def stop(self):
        self.stopped.set()
        self.join()


def reap():
    """Collects children that have ended; those of subprocess must be waited for before."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass


def end_children(grace=2.0):
    """Ends all children and what they leave to us: SIGTERM, and SIGKILL after grace seconds.

    Returns the command lines of what was found.
    """
    found = {}
    deadline = time.monotonic() + grace
    while True:
        reap()
        left = children()
        if not left:
            return list(found.values())
        late = time.monotonic() > deadline
        for pid in left:
            first = pid not in found
            found.setdefault(pid, command_line(pid))
            if first or late:
                try:
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
        time.sleep(0.02)
