#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The examples of examples/rpma, on our librpma or on another one, also each side on its own.

usage: rpma_examples.py DIRECTORY SERVER_LIBRARY CLIENT_LIBRARY

Runs server and client of each and compares what they print.  Exit 77 if there is no such library.
"""
import glob
import os
import subprocess
import sys
import tempfile

PORT = "7400"
SECONDS = 60

# program, server's arguments, client's arguments, what the server prints, and the client
RUNS = [
    ("connection", [], [], "the peer says: client", "the peer says: server"),
    ("read", [], [], "", "read: what the server has in its memory"),
    ("write_flush", ["{dir}/f"], ["some text"], "written: some text", "visible"),
    ("write_flush", ["{dir}/f", "persistent"], ["other text"], "written: other text",
     "persistent"),
    ("append_log", ["{dir}/log"], ["first", "second"], "2 records\n0: first\n1: second",
     "appended 2, now 2"),
    ("append_log", ["{dir}/log"], ["third"], "3 records\n0: first\n1: second\n2: third",
     "appended 1, now 3"),
    ("messages", [], [], "", "MESSAGE 0\nMESSAGE 1\nMESSAGE 2"),
    ("srq", [], [], "received 5 and 5 messages, 90 bytes", "sent 10 messages"),
    ("many", [], [], "8 clients, sum 36", "8 clients done"),
]


def starts_with_peer(text, want):
    """What a CM pads private data with is no part of it."""
    return text.replace("\0", "") == want


def preloading(library):
    """The environment for that library."""
    return {**os.environ, "LD_PRELOAD": os.environ.get("LD_PRELOAD", "") + " " + library}


def run(directory, libraries, scratch, program, server_args, client_args, want_server,
        want_client):
    path = os.path.join(directory, program)
    where = ["127.0.0.1", PORT]
    server = subprocess.Popen(
        [path, "server", *where, *(a.format(dir=scratch) for a in server_args)],
        stdout=subprocess.PIPE, text=True, env=preloading(libraries[0]))
    try:
        if server.stdout.readline() != "listening\n":
            return f"{program}: the server does not listen"
        client = subprocess.run([path, "client", *where, *client_args], text=True,
                                stdout=subprocess.PIPE, timeout=SECONDS, check=False,
                                env=preloading(libraries[1]))
        got, _ = server.communicate(timeout=SECONDS)
    finally:
        server.kill()
        server.wait()
    if client.returncode or server.returncode:
        return f"{program}: client exit {client.returncode}, server exit {server.returncode}"
    if not starts_with_peer(got.strip(), want_server):
        return f"{program}: the server printed {got!r}"
    if not starts_with_peer(client.stdout.strip(), want_client):
        return f"{program}: the client printed {client.stdout!r}"
    return None


def main():
    directory, *libraries = sys.argv[1:]
    for i, library in enumerate(libraries):
        found = glob.glob(library)
        if not found:
            print(f"no {library}")
            sys.exit(77)
        libraries[i] = found[0]
    with tempfile.TemporaryDirectory(prefix="weft-examples-") as scratch:
        problems = [run(directory, libraries, scratch, *r) for r in RUNS]
    for problem in filter(None, problems):
        print(problem)
    bad = sum(1 for p in problems if p)
    print(f"{len(problems) - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)


main()
