#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the assembler lines that put each private symbol into its version nodes.

usage: gen_private.py private_symbols.txt output.inc

A symbol that lies in several nodes needs an alias per node, which C cannot say in a way that
gcc and clang share.  The stubs behind the aliases are in private.c.
"""
import sys

NODES = (34, 57, 59, 64, 65)


def read_list(path):
    with open(path, encoding="ascii") as f:
        for line in f:
            line = line.split("#")[0].split()
            if line:
                yield line[0], line[1], int(line[2])


def alias(name, kind, node, default):
    """One symbol in one node; only one node's may be the default of a name."""
    local = f"weft_private_{node}_{name}"
    elf_type = "object" if kind == "object" else "function"
    at = "@@" if default else "@"
    lines = [f".globl {local}", f".type {local}, %{elf_type}"]
    if kind == "object":
        lines.append(f".size {local}, 1")
    lines += [f".set {local}, private_{kind}",
              f".symver {local}, {name}{at}IBVERBS_PRIVATE_{node}"]
    return "".join(f'\t"{line}\\n"\n' for line in lines)


def main():
    out = []
    for name, kind, first in read_list(sys.argv[1]):
        for node in NODES:
            if node >= first:
                out.append(alias(name, kind, node, node == first))
    for node in NODES:
        out.append(alias(f"verbs_register_driver_{node}", "void", node, True))
    with open(sys.argv[2], "w", encoding="ascii") as f:
        f.write('__asm__(".text\\n"\n' + "".join(out) + ");\n")


main()
