#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft crash finds what is wrong with three of four logs, and nothing with the fourth.

usage: crash.py BUILD LOG OWNER

LOG: the example examples/crash/replog; OWNER: crash_owner, which is beside this file.
"""
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

SECONDS = 100
PORTS = "7521", "7522"
HOST = "127.0.0.1"


class Test:
    def __init__(self, build, log, owner, scratch):
        self.weft = os.path.join(build, "weft")
        self.log = log
        self.owner = owner
        self.dir = scratch
        self.failed = 0
        self.before = []  # of a program's name

    def path(self, name):
        return os.path.join(self.dir, name)

    def want(self, what, holds, shown=""):
        if not holds:
            print(f"FAIL: {what} {shown}")
            self.failed += 1

    def crash(self, *args):
        return subprocess.run([self.weft, "crash", *args], text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=SECONDS)

    def server(self, journal, port, *options):
        data = self.path("data" + port)
        if os.path.exists(data):
            os.unlink(data)
        p = subprocess.Popen(
            [self.weft, "crash", "run", "-j", journal, *options, "--", *self.before, self.log,
             "server", HOST, port, data], stdout=subprocess.PIPE, text=True)
        self.want("a server listens", p.stdout.readline() == "listening\n")
        return p

    def record(self, how, *texts, size="2"):
        """Runs two servers and a client; the journal's name."""
        journal = self.path(how + size)
        servers = [self.server(journal, PORTS[0], "--size", size)]
        servers.append(self.server(journal, PORTS[1], "--add"))
        try:
            client = self.crash("run", "-j", journal, "--add", "--", *self.before, self.log,
                                "client", HOST, *PORTS, how, *texts)
            self.want(f"{how} runs", client.returncode == 0, client.stderr)
            for p in servers:
                out, _ = p.communicate(timeout=SECONDS)
                self.want(f"{how}: what the server has", out == f"{len(texts)} records\n", out)
        finally:
            for p in servers:
                p.kill()
                p.wait()
        return journal

    def check(self, journal, *options):
        return self.crash("check", "--recover", f"'{self.log}' recover {{}}", "-n", "16",
                          *options, journal)

    def rules(self, journal):
        """Where flushes are READs, one for visibility shows only if data stays in a cache."""
        return [] if "FLUSH for visibility" in self.crash("show", journal).stdout else ["--ddio"]


def options(t, journal):
    for bad in (["-n", "0"], ["--timeout", "0"], ["--at", "0"], ["--random", "0"],
                ["--all", "--random", "3"], ["--at", "1", "--random", "2"],
                ["--at", "1", "--everywhere"]):
        t.want(f"usage: {bad}", t.crash("check", "--recover", "true {}", *bad,
                                        journal).returncode == 2)
    t.want("usage: no command", t.crash("check", "--recover", "", journal).returncode == 2)
    got = t.crash("check", "--recover", "true", journal)
    t.want("a check that does not look", got.returncode == 0 and "no {}" in got.stderr, got.stderr)
    got = t.crash("images", journal, t.dir)
    t.want("images of another time", got.returncode == 1 and "empty" in got.stderr, got.stderr)
    got = t.crash("images", "--at", "99999", journal, t.dir)
    t.want("no such record", got.returncode == 1 and "no record" in got.stderr, got.stderr)
    libraries = os.environ.pop("LD_LIBRARY_PATH", None)
    got = t.crash("check", "--recover", "ls $LD_LIBRARY_PATH/libibverbs.so.1 # {}", journal)
    t.want("a check finds our libraries", got.returncode == 0, got.stdout + got.stderr)
    if libraries:
        os.environ["LD_LIBRARY_PATH"] = libraries


def leftovers(t, journal):
    """What a check leaves running, and what is there when weft itself is ended."""
    pids = t.path("pids")
    got = t.crash("check", "--recover", f"sleep 997 & echo $! >>'{pids}' # {{}}", journal)
    t.want("a check with a child", got.returncode == 0, got.stdout + got.stderr)
    tmp = t.path("tmp")
    os.mkdir(tmp)
    before = os.path.getsize(pids)
    p = subprocess.Popen([t.weft, "crash", "check", "--recover",
                          f"echo $$ >>'{pids}'; sleep 998 # {{}}", "--timeout", "60", journal],
                         env={**os.environ, "TMPDIR": tmp}, stdout=subprocess.DEVNULL)
    until = time.time() + SECONDS
    while os.path.getsize(pids) == before and time.time() < until:
        time.sleep(0.02)
    p.terminate()
    t.want("ended by a signal", p.wait() == 128 + signal.SIGTERM)
    t.want("nothing is left", not os.listdir(tmp), os.listdir(tmp))
    with open(pids, encoding="ascii") as f:
        for pid in f.read().split():
            t.want(f"{pid} is ended", gone(int(pid)))


def misplaced(t, journal):
    """A weft that cannot find its libraries leaves no directory behind."""
    away, tmp = t.path("away"), t.path("empty")
    os.makedirs(os.path.join(away, "lib"))
    os.mkdir(tmp)
    shutil.copy(t.weft, away)
    open(os.path.join(away, "lib", "libweftpaths.so"), "wb").close()
    got = subprocess.run([os.path.join(away, "weft"), "crash", "check", "--recover", "true {}",
                          journal], env={**os.environ, "TMPDIR": tmp}, check=False,
                         stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    t.want("no libraries", got.returncode == 1 and "libibverbs" in got.stderr, got.stderr)
    t.want("no directory is left", not os.listdir(tmp), os.listdir(tmp))


def gone(pid):
    """Soon there is no such process, or but a zombie that nobody waits for."""
    until = time.time() + SECONDS
    while time.time() < until:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def correct(t):
    journal = t.record("correct", "one", "two")
    got = t.check(journal)
    t.want("the correct log passes", got.returncode == 0 and "passes" in got.stdout,
           got.stdout + got.stderr)
    got = t.check(journal, "--random", "8", "--seed", "7")
    t.want("it passes random images", got.returncode == 0, got.stdout + got.stderr)
    got = t.check(journal, "--json")
    t.want("it passes in JSON", json.loads(got.stdout)["broken"] is False, got.stdout)
    t.want("its flushes are noted", "rpma_flush() of 64 bytes for persistence" in
           t.crash("show", journal).stdout)
    got = t.check(journal, "--flush-ranges")
    t.want("its flushes have the right ranges", got.returncode == 0, got.stdout + got.stderr)
    got = t.crash("images", journal, t.dir, "--at", "3")
    t.want("its images", got.returncode == 0 and os.path.isdir(t.path("image-0")),
           got.stdout + got.stderr)
    got = t.crash("check", "--recover", "exit 3 # {}", journal)
    t.want("a check that always fails", got.returncode == 1 and "(exit 3)" in got.stdout,
           got.stdout + got.stderr)
    got = t.crash("check", "--recover", "kill -9 $$ # {}", journal)
    t.want("one that dies", got.returncode == 1 and "(signal 9)" in got.stdout, got.stdout)
    got = t.crash("check", "--recover", "sleep 1000 # {}", "--timeout", "1", "--at", "2", journal)
    t.want("one that hangs", got.returncode == 1 and "did not end" in got.stdout, got.stdout)
    got = t.crash("check", "--recover", "no-such-command {}", journal)
    t.want("one that is not there", got.returncode == 1 and "cannot run" in got.stderr, got.stderr)
    options(t, journal)
    leftovers(t, journal)
    misplaced(t, journal)
    got = t.crash("run", "-j", journal, "--", "true")
    t.want("a journal is not overwritten", got.returncode == 1 and "--add" in got.stderr)
    return journal


def by_owner(t):
    """What the owner of the memory makes durable itself, and that a crash before it may lose."""
    journal = t.path("owner")
    got = t.crash("run", "-j", journal, "--size", "1", "--", t.owner, t.path("pmem"))
    t.want("the owner runs", got.returncode == 0, got.stdout + got.stderr)
    records = json.loads(t.crash("show", "--json", journal).stdout)
    t.want("the owner's records",
           [(r["kind"], r.get("offset"), r["length"]) for r in records] ==
           [("region", 0, 8192), ("write", 0, 8), ("persist", 0, 4096), ("persist", 0, 8192),
            ("persist", 0, 8192), ("persist", 64, 16), ("mark", None, 0), ("mark", None, 0)],
           records)
    whole = "test $(od -An -tu1 -N1 {}) = 7 && test $(od -An -tu1 -j200 -N1 {}) = 1"
    got = t.crash("check", "--recover", whole, "--at", "7", journal)
    t.want("all is durable", got.returncode == 0, got.stdout + got.stderr)
    got = t.crash("check", "--recover", whole, "--at", "2", journal)
    t.want("a write before that is not", got.returncode == 1, got.stdout + got.stderr)
    stored = "test $(od -An -tu1 -j200 -N1 {}) = 1"
    got = t.crash("check", "--recover", stored, "--at", "2", journal)
    t.want("what the owner stored is named", "Lost:\n  what its owner stored there before #3 made"
           in got.stdout and "1 of 1 words: +0xc8..+0xcf" in got.stdout, got.stdout + got.stderr)
    t.want("and what makes no difference", "Kept or lost, it breaks all the same:\n  #2 RDMA WRITE"
           in got.stdout, got.stdout)
    found = json.loads(t.crash("check", "--recover", stored, "--json", "--at", "2", journal).stdout)
    t.want("in JSON, too", [r["record"] for r in found["lost"]] == [3] and
           [r["record"] for r in found["either"]] == [2], found)
    got = t.crash("check", "--recover", "exit 3 # {}", "--at", "2", journal)
    t.want("no store helps", "Lost:\n  nothing" in got.stdout, got.stdout)
    got = t.crash("check", "--recover", whole, "--json", "--at", "3", journal)
    found = json.loads(got.stdout)
    t.want("nor in the middle of msync", found["broken"] and found["during"], found)


def lost_and_kept(t, journal, *options):
    got = t.check(journal, "--json", *options)
    t.want("it is broken", got.returncode == 1, got.stdout + got.stderr)
    found = json.loads(got.stdout)
    return found, found.get("lost", []), found.get("kept", [])


def mutants(t):
    journal = t.record("no-flush", "one", "two")
    found, lost, kept = lost_and_kept(t, journal)
    t.want("no-flush: the record is lost", [r["length"] for r in lost] == [64], lost)
    t.want("no-flush: as little as is enough", lost and lost[0]["lost_words"] == 1, lost)
    t.want("no-flush: the word is kept, and nothing else",
           [r["operation"] for r in kept] == ["ATOMIC WRITE"], kept)
    t.want("no-flush: what makes no difference", isinstance(found.get("either"), list), found)
    t.want("no-flush: whose it is",
           lost and lost[0]["name"] == "replog" and lost[0]["wr_id"] == 1, lost)
    text = t.check(journal, "--keep", t.path("bad")).stdout
    t.want("no-flush: in words", "record 1 is not whole" in text and "RDMA WRITE of 64" in text,
           text)
    again = subprocess.run([t.log, "recover", t.path("bad")], check=False,
                           stdout=subprocess.DEVNULL).returncode
    t.want("no-flush: the image is kept", again == 1)

    journal = t.record("visibility", "one", "two")
    found, lost, kept = lost_and_kept(t, journal, *t.rules(journal))
    t.want("visibility: one write is enough", len(lost) == 1, lost)

    journal = t.record("no-fence", "one", "two")
    found, lost, kept = lost_and_kept(t, journal)
    t.want("no-fence: what it overtook is lost", [r["length"] for r in lost] == [64], lost)
    t.want("no-fence: it is told", found.get("overtakes"), found)
    return journal


def flushes_by_read(t):
    """The distribution's librpma has no FLUSH: a READ makes durable what was asked for, and more."""
    theirs = glob.glob("/usr/lib/*-linux-gnu/librpma.so.0")
    with open(os.path.join(os.path.dirname(t.weft), "lib", "libibverbs.so.1"), "rb") as f:
        ours = f.read()
    if not theirs or b"libasan" in ours or b"libtsan" in ours:
        return
    t.before = ["sh", "-c", f'LD_PRELOAD="$LD_PRELOAD:{theirs[0]}" exec "$@"', "sh"]
    journal = t.record("correct", "one", size="3")
    shown = t.crash("show", journal).stdout
    if "FLUSH" in shown and "RDMA READ" not in shown:  # a librpma that has it
        return
    t.want("it flushes by READ", "RDMA READ" in shown)
    got = t.check(journal, "--flush-ranges")
    t.want("by READ: the ranges are right", got.returncode == 0, got.stdout + got.stderr)
    journal = t.record("visibility", "one", size="3")
    got = t.check(journal)
    t.want("by READ: visibility is enough", got.returncode == 0, got.stdout + got.stderr)
    got = t.check(journal, "--flush-ranges")
    t.want("by READ: but not if ranges count", got.returncode == 1, got.stdout + got.stderr)
    t.before = []


def damaged(t, journal):
    """A journal that was cut short or changed by accident is refused, and where is told."""
    saved(t, journal)
    with open(journal, "rb") as f:
        whole = f.read()
    bad = t.path("damaged")
    at = 4096 + 128 + 60  # in the second record
    for data, told in ((whole[:-5], f"{len(whole) - 5} bytes"), (whole[:5000], "5000 bytes"),
                       (whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:], f"byte {4096 + 128}")):
        with open(bad, "wb") as f:
            f.write(data)
        for args in (("show", bad), ("check", "--recover", "true {}", bad),
                     ("images", bad, t.path("nowhere"))):
            got = t.crash(*args)
            t.want(f"damaged: {args[0]}", got.returncode == 1 and "is damaged" in got.stderr and
                   told in got.stderr, got.stderr)


WRITER = """
import ctypes, sys
note = ctypes.CDLL(None).weft_crash_note_mark
for line in sys.stdin:
    print(note(line.strip().encode()), flush=True)
"""


class Writer:
    """A program that marks what it is told, and says when it has."""

    def __init__(self, t, journal, *options):
        self.t = t
        self.p = subprocess.Popen([t.weft, "crash", "run", "-j", journal, *options, "--",
                                   sys.executable, "-c", WRITER], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def mark(self, text):
        self.p.stdin.write(text + "\n")
        self.p.stdin.flush()
        got = self.p.stdout.readline()
        self.t.want(f"the mark {text}", got == "0\n", got)

    def end(self):
        self.p.stdin.close()
        self.t.want("the writer ends", self.p.wait(timeout=SECONDS) == 0, self.p.returncode)


def keeper_of(journal):
    """The process that keeps a journal; 0: it is saved."""
    with open(journal, "rb") as f:
        return struct.unpack_from("=I", f.read(4096), 32)[0]


def saved(t, journal):
    """Soon it is, and who kept it is gone; what the commands show of it."""
    until = time.time() + SECONDS
    while time.time() < until:
        got = t.crash("show", journal)
        if got.returncode == 0 and not keeper_of(journal):
            return got.stdout
        time.sleep(0.02)
    t.want("it is saved", False, got.stderr)
    return ""


def cut(t):
    """A program lives on when its journal is cut, and all that it noted is there in the end."""
    journal = t.path("cut")
    writer = Writer(t, journal, "--size", "1")
    writer.mark("one")
    keeper = keeper_of(journal)
    t.want("a live journal is shown", "one" in t.crash("show", journal).stdout)
    os.truncate(journal, 4096)
    writer.mark("two")
    got = t.crash("show", journal)
    t.want("its head is enough", "two" in got.stdout, got.stderr)
    os.truncate(journal, 0)
    writer.mark("three")
    got = t.crash("show", journal)
    t.want("without a head it is refused", got.returncode == 1 and "no journal" in got.stderr,
           got.stderr)
    writer.end()
    shown = saved(t, journal)
    t.want("all was saved", all(m in shown for m in ("one", "two", "three")), shown)
    t.want("who kept it is gone", gone(keeper))
    writer = Writer(t, journal, "--add")
    writer.mark("four")
    writer.end()
    # Right away, wherever it is at that moment.
    shown = t.crash("show", journal).stdout
    t.want("added to", "three" in shown and "four" in shown, shown)
    saved(t, journal)


def unkept(t):
    """Who keeps the journal is killed: that is told, and nobody hangs or dies."""
    journal = t.path("unkept")
    writer = Writer(t, journal, "--size", "1")
    writer.mark("one")
    keeper = keeper_of(journal)
    with open(f"/proc/{keeper}/comm", encoding="ascii") as f:
        t.want("it has a name", f.read() == "weft-journal\n")
    for sig in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
        os.kill(keeper, sig)
    writer.mark("two")
    t.want("other signals do not end it", "two" in t.crash("show", journal).stdout)
    os.kill(keeper, signal.SIGKILL)
    t.want("it is killed", gone(keeper))
    writer.mark("three")
    for args in (("show", journal), ("mark", journal, "four"), ("check", "--recover", "true {}",
                 journal), ("run", "-j", journal, "--add", "--", "true")):
        got = t.crash(*args)
        t.want(f"unkept: {args[0]}", got.returncode == 1 and "was not saved" in got.stderr and
               "killed" in got.stderr, got.stderr)
    writer.end()


def orphans(t):
    """What a program leaves behind goes on noting, and is waited for."""
    journal, fifo, told = t.path("orphans"), t.path("fifo"), t.path("told")
    os.mkfifo(fifo)
    got = t.crash("run", "-j", journal, "--size", "1", "--", "sh", "-c",
                  '(exec >"$3" 2>&1; exec <"$2"; exec "$0" -c "$1") &', sys.executable, WRITER, fifo, told)
    t.want("a shell leaves it", got.returncode == 0, got.stderr)
    keeper = keeper_of(journal)
    t.want("it is kept", keeper != 0)
    with open(fifo, "w", encoding="ascii") as f:
        f.write("late\n")
    shown = saved(t, journal)
    t.want("it was waited for", "late" in shown, shown)
    t.want("and nobody is left", gone(keeper))


def as_before(t):
    """What keeps the journal is not seen by the program."""
    journal = t.path("as-before")
    got = t.crash("run", "-j", journal, "--size", "1", "--", "sh", "-c",
                  'echo $$; ls /proc/$$/fd; kill -9 $$')
    out = got.stdout.split()
    t.want("its fds", out[1:] == ["0", "1", "2"], out)
    t.want("its end", got.returncode == -signal.SIGKILL, got.returncode)
    saved(t, journal)
    got = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", t.weft, "crash", "run", "-j",
                          journal, "--add", "--", "true"], check=False, timeout=SECONDS)
    t.want("without stdio", got.returncode == 0, got.returncode)
    saved(t, journal)


def ends(t, journal):
    saved(t, journal)
    got = t.crash("mark", journal, "the end")
    t.want("mark", got.returncode == 0, got.stderr)
    got = t.crash("now", journal)
    t.want("now", got.returncode == 0 and "failed after record" in got.stdout, got.stdout)
    shown = t.crash("show", journal).stdout
    t.want("the mark is shown", "mark" in shown and "the end" in shown, shown)
    t.want("the end is shown", "here the power failed" in shown, shown)
    t.want("no mark after the end", t.crash("mark", journal, "late").returncode == 1)
    t.want("nothing is added after the end",
           t.crash("run", "-j", journal, "--add", "--", "true").returncode == 1)
    got = t.check(journal)
    t.want("the end alone is looked at", "1 crash point," in got.stdout, got.stdout)
    t.want("unless asked otherwise", t.check(journal, "--everywhere").returncode == 1)
    with open(t.path("plain"), "wb") as f:
        f.write(b"x" * 2000000)
    got = t.crash("show", t.path("plain"))
    t.want("no journal", got.returncode == 1 and "is no journal" in got.stderr, got.stderr)
    damaged(t, journal)
    t.want("usage", t.crash("check", journal).returncode == 2)
    t.want("usage of now", t.crash("now").returncode == 2)
    t.want("an unknown command", t.crash("later").returncode == 2)


def not_started(t):
    """A program that cannot be started leaves no journal, but for one that was there."""
    journal = t.path("unused")
    for program, status in (("no-such-program", 127), (t.dir, 126)):
        got = t.crash("run", "-j", journal, "--", program)
        t.want(f"{program} is not run", got.returncode == status, got.stderr)
        t.want("no journal is left", not os.path.exists(journal))
    t.want("a program runs", t.crash("run", "-j", journal, "--", "true").returncode == 0)
    t.crash("run", "-j", journal, "--add", "--", "no-such-program")
    t.want("a journal that was there stays", os.path.exists(journal))


def main():
    # With AddressSanitizer: what is preloaded comes before its runtime, which does not matter.
    os.environ["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
    build, log, owner = (os.path.abspath(a) for a in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="weft-crash-") as scratch:
        t = Test(build, log, owner, scratch)
        correct(t)
        by_owner(t)
        not_started(t)
        cut(t)
        unkept(t)
        orphans(t)
        as_before(t)
        flushes_by_read(t)
        ends(t, mutants(t))
    print(f"{t.failed} failed")
    sys.exit(1 if t.failed else 0)


main()
