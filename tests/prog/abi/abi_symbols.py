#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what a shared library exports and needs against its committed list.

usage: abi_symbols.py LIBRARY LIST SONAME [NEEDED]...

Compares readelf's view with LIST, asks the dynamic loader for default versions, and, where the
system has a library of that soname, checks that ours can stand in for it.  NEEDED: the libraries
beside libc that it may take public symbols from; librdmacm alone takes private ones of libibverbs.
"""
import ctypes
import glob
import re
import subprocess
import sys

failures = []


def check(ok, text):
    if not ok:
        failures.append(text)


def readelf(*args):
    return subprocess.run(["readelf", "-W", *args], check=True, capture_output=True,
                          text=True).stdout


def symbols(path):
    """Two sets of "TYPE name@version": defined and undefined."""
    defined, undefined = set(), set()
    for line in readelf("--dyn-syms", path).splitlines():
        f = line.split()
        if len(f) < 8 or not f[0].endswith(":") or f[4] not in ("GLOBAL", "WEAK"):
            continue
        if f[6] == "ABS":  # the nodes themselves
            continue
        if f[6] == "UND":
            if f[4] == "GLOBAL":
                undefined.add(f[7])
        else:
            defined.add(f"{f[3]} {f[7]}")
    return defined, undefined


def read_list(path):
    with open(path, encoding="ascii") as f:
        return {line.strip() for line in f if line.strip() and not line.startswith("#")}


def check_list(defined, expected):
    for s in sorted(expected - defined):
        check(False, f"missing: {s}")
    for s in sorted(defined - expected):
        check(False, f"not in the list: {s}")


def check_dynamic(path, soname, others):
    dynamic = readelf("-d", path)
    check(f"soname: [{soname}]" in dynamic, f"soname is not {soname}")
    check(re.search(r"\(FLAGS\).*BIND_NOW", dynamic), "not linked with BIND_NOW")
    check("TEXTREL" not in dynamic, "has text relocations")
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    check(needed <= {"libc.so.6", "libm.so.6"} | others, f"needs more: {sorted(needed)}")


# What we take of libraries whose symbols have no version.
UNVERSIONED = {"libisal.so.2": "crc32_gzip_refl", "libdeflate.so.0": "libdeflate_crc32"}


def check_undefined(undefined, soname, others):
    nodes = [r"GLIBC_[\d.]+"]
    if "libibverbs.so.1" in others:
        nodes.append(r"IBVERBS_1\.\d+")
    if "librdmacm.so.1" in others:
        nodes.append(r"RDMACM_1\.\d+")
    if "libmnl.so.0" in others:
        nodes.append(r"LIBMNL_1\.\d+")
    if soname == "librdmacm.so.1":
        nodes.append("WEFT_PRIVATE_1")
    without_node = {UNVERSIONED[o] for o in others if o in UNVERSIONED}
    for s in sorted(undefined):
        if re.search(f"@({'|'.join(nodes)})$", s) or s.startswith("__tls_get_addr") \
                or s in without_node:
            continue
        check(False, f"undefined outside libc: {s}")


def check_loader(path, defined):
    """What dlsym and dlvsym give must be one and the same for a default version."""
    lib = ctypes.CDLL(path)
    dl = ctypes.CDLL(None)
    dl.dlvsym.restype = dl.dlsym.restype = ctypes.c_void_p
    dl.dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    dl.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    for symbol in defined:
        name, default, version = symbol.split()[1].partition("@@")
        if not default:
            continue
        by_version = dl.dlvsym(lib._handle, name.encode(), version.encode())
        check(by_version, f"dlvsym does not find {symbol}")
        check(by_version == dl.dlsym(lib._handle, name.encode()), f"not the default: {symbol}")


def system_library(soname):
    for path in glob.glob(f"/usr/lib/*-linux-gnu/{soname}"):
        return path
    return None


def check_stand_in(defined, soname):
    """Hidden versions of the system's library are compatibility for old binaries."""
    path = system_library(soname)
    if not path:
        print(f"no {soname} in the system: not compared")
        return
    theirs, _ = symbols(path)
    for s in sorted(s for s in theirs - defined if "@@" in s):
        check(False, f"the system's library has {s}")
    nodes = re.compile(r"Rev: \d+ .*Name: (\S+)")
    ours = set(nodes.findall(readelf("-V", sys.argv[1])))
    for node in sorted(set(nodes.findall(readelf("-V", path))) - ours):
        if not node.startswith("lib"):
            check(False, f"the system's library has version node {node}")


def main():
    path, list_path, soname, *others = sys.argv[1:]
    others = set(others)
    defined, undefined = symbols(path)
    check_list(defined, read_list(list_path))
    check_dynamic(path, soname, others)
    check_undefined(undefined, soname, others)
    check_loader(path, defined)
    check_stand_in(defined, soname)
    for text in failures:
        print(text)
    print(f"{len(defined)} symbols, {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
