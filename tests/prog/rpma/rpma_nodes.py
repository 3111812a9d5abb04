#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program linked with any release of librpma starts on ours.

usage: rpma_nodes.py LIBDIR RELEASES CC...

For each release of RELEASES a stand-in for its librpma.so.0 is made, with that release's functions
in that release's version node; a program that uses every one of them is linked with it, and runs on
LIBDIR, all symbols bound at once.
"""
import os
import re
import subprocess
import sys
import tempfile

NODES = {"0.9": "LIBRPMA_1.0", "1.0": "LIBRPMA_1.0"}

# Calls that need no adapter; -100004 is RPMA_E_INVAL.
PROGRAM = """
#include <string.h>
%s
static void *volatile table[] = {%s};
int main(void)
{
	const char *(*text)(int) = (const char *(*)(int))rpma_err_2str;
	int (*get)(void *, void *) = (int (*)(void *, void *))rpma_conn_get_private_data;
	unsigned i;

	for (i = 0; i < sizeof table / sizeof table[0]; i++)
		if (!table[i])
			return 1;
	if (strcmp(text(-100004), "Invalid argument") || get(0, 0) != -100004)
		return 2;
	return i == %d ? 0 : 3;
}
"""


def read_releases(path):
    releases = {}
    with open(path, encoding="ascii") as f:
        for line in f:
            if line.startswith("#"):
                continue
            name, *had = line.split()
            for release in had:
                releases.setdefault(release, []).append(name)
    return releases


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def build(cc, scratch, node, names):
    """The path of a program that needs all these names of that node."""
    lib, program = os.path.join(scratch, "librpma.so.0"), os.path.join(scratch, "program")
    write(f"{scratch}/stub.c", "".join(f"void {n}(void) {{}}\n" for n in names))
    write(f"{scratch}/stub.map", f"{node} {{ global: rpma_*; local: *; }};\n")
    write(f"{scratch}/program.c", PROGRAM % (
        "".join(f"void {n}(void);\n" for n in names), ", ".join(names), len(names)))
    subprocess.run([*cc, "-shared", "-fPIC", "-Wl,-soname,librpma.so.0",
                    f"-Wl,--version-script={scratch}/stub.map", "-o", lib, f"{scratch}/stub.c"],
                   check=True)
    subprocess.run([*cc, "-w", "-o", program, f"{scratch}/program.c", lib], check=True)
    needs = subprocess.run(["readelf", "-W", "--dyn-syms", program], check=True,
                           capture_output=True, text=True).stdout
    if len(re.findall(rf" rpma_\w+@{re.escape(node)}\b", needs)) != len(names):
        sys.exit(f"{node}: the program does not need all {len(names)} names")
    return program


def main():
    libdir, path, *cc = sys.argv[1:]
    env = dict(os.environ, LD_LIBRARY_PATH=libdir, LD_BIND_NOW="1")
    failed = 0
    releases = read_releases(path)
    for release, names in releases.items():
        node = NODES.get(release, f"LIBRPMA_{release}")
        with tempfile.TemporaryDirectory(prefix="weft-nodes-") as scratch:
            program = build(cc, scratch, node, names)
            run = subprocess.run([program], env=env, capture_output=True, text=True, timeout=30,
                                 check=False)
        print(f"{release}: {len(names)} functions of {node}: exit {run.returncode} {run.stderr}")
        failed += run.returncode != 0
    sys.exit(1 if failed or len(releases) != 7 else 0)


main()
