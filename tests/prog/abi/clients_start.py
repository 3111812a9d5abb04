#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every RDMA client of the distribution starts on our libraries.

usage: clients_start.py LIBDIR

Two checks each: `ldd -r` with LD_LIBRARY_PATH=LIBDIR resolves every symbol, the lazy ones too,
and takes our library; and the program runs with harmless arguments without a loader error.
What the programs then say of a device does not matter here.  Exit 77 if none is installed.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

# (package, programs, arguments of the run; None: it has no harmless ones)
CLIENTS = [
    ("perftest", "ib_atomic_bw ib_atomic_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat "
     "ib_write_bw ib_write_lat raw_ethernet_burst_lat raw_ethernet_bw raw_ethernet_fs_rate "
     "raw_ethernet_lat", ["--version"]),
    ("ibverbs-utils", "ibv_devices ibv_devinfo", []),
    ("ibverbs-utils", "ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong ibv_ud_pingpong "
     "ibv_xsrq_pingpong", ["--help"]),
    ("ibverbs-utils", "ibv_asyncwatch", None),
    ("rdmacm-utils", "cmtime mckey rcopy rdma_client rdma_server rdma_xclient rdma_xserver "
     "riostream rping rstream ucmatose udaddy udpong", ["-?"]),
    ("infiniband-diags", "dump_fts ibaddr ibcacheedit ibccconfig ibccquery iblinkinfo "
     "ibnetdiscover ibping ibportstate ibqueryerrors ibroute ibstat ibsysstat ibtracert "
     "perfquery saquery sminfo smpdump smpquery vendstat", ["-V"]),
    ("opensm", "opensm", ["--version"]),
    ("opensm", "osmtest", ["-h"]),
    ("fio", "fio", ["--enghelp=rdma"]),
    ("qperf", "qperf", ["--version"]),
    ("libfabric-bin", "fi_info", ["-p", "verbs"]),
    ("libfabric-bin", "fi_pingpong", ["-h"]),
    ("ucx-utils", "ucx_info", ["-d"]),
    ("ucx-utils", "ucx_perftest", ["-h"]),
]

# (package, files that programs load at run time, names they may take from who loads them)
MODULES = [
    ("libucx0", "/usr/lib/*-linux-gnu/ucx/libuct_ib.so.0", None),
    ("libucx0", "/usr/lib/*-linux-gnu/ucx/libuct_rdmacm.so.0", None),
    ("libfabric1", "/usr/lib/*-linux-gnu/libfabric.so.1", None),
    ("librpma0", "/usr/lib/*-linux-gnu/librpma.so.0", None),
    ("librdmacm1", "/usr/lib/*-linux-gnu/librdmacm.so.1", None),
    ("librdmacm1", "/usr/lib/*-linux-gnu/rsocket/librspreload.so.1", None),
    ("ibverbs-providers", "/usr/lib/*-linux-gnu/libmlx5.so.1", None),
    ("ibverbs-providers", "/usr/lib/*-linux-gnu/libmlx4.so.1", None),
    ("ibverbs-providers", "/usr/lib/*-linux-gnu/libefa.so.1", None),
    ("ibverbs-providers", "/usr/lib/*-linux-gnu/libmana.so.1", None),
    ("python3-pyverbs", "/usr/lib/python3/dist-packages/pyverbs/*.so", r"_?Py"),
    ("python3-pyverbs", "/usr/lib/python3/dist-packages/pyverbs/providers/*/*.so", r"_?Py"),
]

PYVERBS = "/usr/lib/python3/dist-packages/pyverbs"
PYTHON = "/usr/bin/python3"
LOADER_ERROR = re.compile(
    r"symbol lookup error|undefined symbol|version `[^']*' not found|no version information"
    r"|error while loading shared libraries|cannot open shared object")
RUN_SECONDS = 30


class Test:
    def __init__(self, libdir, scratch):
        self.libdir = os.path.realpath(libdir)
        self.scratch = scratch
        self.passed = 0
        self.failed = []
        self.skipped = set()
        self.env = dict(os.environ, LD_LIBRARY_PATH=self.libdir, WEFT_RUNTIME_DIR=scratch,
                        WEFT_AUTOSTART="0", LC_ALL="C")
        self.env.pop("LD_PRELOAD", None)

    def verdict(self, name, problem):
        if problem:
            self.failed.append(name)
            print(f"FAIL {name}: {problem}")
        else:
            self.passed += 1

    def run(self, argv, **more_env):
        """Returns (exit status, everything printed)."""
        try:
            p = subprocess.run(argv, env=dict(self.env, **more_env), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               cwd=self.scratch, timeout=RUN_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return 124, "did not end"
        return p.returncode, p.stdout.decode(errors="replace")

    def resolve(self, path, may_lack=None):
        """Says what does not resolve in path, or that it does not get our library."""
        status, text = self.run(["ldd", "-r", path])
        for line in text.splitlines():
            if LOADER_ERROR.search(line):
                lacks = re.search(r"undefined symbol: (\w+)", line)
                if not (lacks and may_lack and re.match(may_lack, lacks.group(1))):
                    return line.strip()
        if status:
            return f"ldd: exit {status}"
        for soname, where in re.findall(r"^\s*(lib\w+\.so\.\d+) => (\S+)", text, re.M):
            ours = os.path.join(self.libdir, soname)
            if os.path.exists(ours) and os.path.realpath(where) != os.path.realpath(ours):
                return f"takes {where}, not ours"
        return None

    def start(self, argv, **more_env):
        status, text = self.run(argv, **more_env)
        for line in text.splitlines():
            if LOADER_ERROR.search(line):
                return line.strip()
        if status < 0 or status in (124, 126, 127):
            return f"exit {status}: {text.strip()[-200:]}"
        return None


def clients(test):
    for package, programs, arguments in CLIENTS:
        for program in programs.split():
            path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
            if not path:
                test.skipped.add(f"{program} ({package})")
                continue
            test.verdict(program, test.resolve(path))
            if arguments is not None:
                test.verdict(f"{program} run", test.start([path, *arguments]))


def modules(test):
    for package, pattern, may_lack in MODULES:
        paths = glob.glob(pattern)
        if not paths:
            test.skipped.add(f"{os.path.basename(pattern)} ({package})")
        for path in paths:
            test.verdict(path, test.resolve(path, may_lack))


def ucx_loads_modules(test):
    """UCX hides a module that does not load: it says so at debug level only."""
    if not shutil.which("ucx_info"):
        return
    status, text = test.run(["ucx_info", "-d"], UCX_LOG_LEVEL="debug")
    bad = [line for line in text.splitlines() if "dlopen" in line and "failed" in line
           and ("libuct_ib" in line or "libuct_rdmacm" in line) and LOADER_ERROR.search(line)
           and "No such file" not in line]
    test.verdict("ucx_info loads its modules", bad[0] if bad or status < 0 else None)


def pyverbs(test):
    files = sorted(glob.glob(PYVERBS + "/*.so") + glob.glob(PYVERBS + "/providers/*/*.so"))
    if not files or not os.path.exists(PYTHON):
        test.skipped.add("pyverbs imports (python3-pyverbs)")
        return
    names = [os.path.relpath(f, os.path.dirname(PYVERBS)).split(".")[0].replace("/", ".")
             for f in files]
    # Not every module can be imported first.
    status, text = test.run([PYTHON, "-c", "import pyverbs.device, " + ", ".join(names)])
    test.verdict("pyverbs imports", text.strip()[-300:] or f"exit {status}" if status else None)


def main():
    if not os.path.exists(os.path.join(sys.argv[1], "libibverbs.so.1")):
        sys.exit(f"no libibverbs.so.1 in {sys.argv[1]}: build it first")
    with tempfile.TemporaryDirectory(prefix="weft-clients-") as scratch:
        test = Test(sys.argv[1], scratch)
        clients(test)
        modules(test)
        ucx_loads_modules(test)
        pyverbs(test)
    for name in sorted(test.skipped):
        print(f"SKIP {name}: not installed")
    print(f"{test.passed} passed, {len(test.failed)} failed, {len(test.skipped)} skipped")
    if not test.passed and not test.failed:
        sys.exit(77)
    sys.exit(1 if test.failed else 0)


main()
