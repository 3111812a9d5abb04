#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""<rdma/peer_mem.h> compiles alone, in every language and generation that clients use.

usage: peer_mem_header.py INCLUDE_DIRECTORY COMPILER...
"""
import subprocess
import sys

LANGUAGES = [["-x", "c", "-std=c11", "-pedantic"], ["-x", "c", "-std=gnu17"],
             ["-x", "c++", "-std=c++17", "-pedantic"]]

# What a client writes, by generation: the context as its header has it.
CLIENT = """
#include <rdma/peer_mem.h>
static int get_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *sg_head,
    void *client_context, CONTEXT core_context)
{
    (void)core_context;
    return client_context && addr && size && write && force ? (int)sg_head->nents : 0;
}
int start(void);
int start(void)
{
    static struct peer_memory_client client;
    static invalidate_peer_memory invalidate;
    client.get_pages = get_pages;
    client.name[IB_PEER_MEMORY_NAME_MAX - 1] = client.version[IB_PEER_MEMORY_VER_MAX - 1] = 0;
    return invalidate(ib_register_peer_memory_client(&client, &invalidate), (CONTEXT)1);
}
"""
EX = """
struct peer_memory_client_ex ex = {{{0}, {0}, 0, 0, 0, 0, 0, 0, 0}, sizeof ex,
    PEER_MEM_INVALIDATE_UNMAPS};
"""
OWN_TYPES = """
#include <stddef.h>
#define PEER_MEM_KERNEL_TYPES
typedef unsigned long long u64, dma_addr_t;
typedef unsigned int u32;
struct sg_table { void *sgl; u32 nents, orig_nents; };
"""


def compiles(compiler, args, text):
    run = subprocess.run(compiler + args + ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-"],
                         input=text, text=True, capture_output=True, check=False)
    if run.returncode:
        print(" ".join(args) + ":\n" + run.stderr)
    return run.returncode == 0


def main():
    include, compiler = sys.argv[1], sys.argv[2:]
    failed = 0
    for generation in ["", "A", "B", "C", "D", "E"]:
        context = "void *" if generation in ("", "A") else "u64"
        text = CLIENT.replace("CONTEXT", context) + (EX if generation == "E" else "")
        chosen = [f"-DPEER_MEM_GENERATION={generation}"] if generation else []
        for language in LANGUAGES:
            args = language + ["-I", include] + chosen
            failed += not compiles(compiler, args, "#include <rdma/peer_mem.h>\n")
            failed += not compiles(compiler, args, text)
            failed += not compiles(compiler, args, OWN_TYPES + text)
    wrong = LANGUAGES[1] + ["-I", include, "-DPEER_MEM_GENERATION=F"]
    run = subprocess.run(compiler + wrong + ["-fsyntax-only", "-"], text=True, check=False,
                         input="#include <rdma/peer_mem.h>\n", capture_output=True)
    failed += "is one of" not in run.stderr
    sys.exit(f"{failed} failed" if failed else 0)


main()
