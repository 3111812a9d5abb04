#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ti_samples.py BUILD SOURCE: the document's samples, as they are in examples/ti, exchange data between
two processes; prints in what they differ from the document's, and checks that this list is true.

The list, examples/ti/differences, has no more of the document than the lines that differ: taken back,
its changes must give a text with the hash below.  "ti_samples.py --update DOCUMENT SOURCE" writes it
anew after a change of the samples; DOCUMENT is the text of the SDP Transport Interface of 2002.
"""
import difflib
import hashlib
import os
import re
import socket
import subprocess
import sys
import time

# Of all samples in their order, as lines of tokens.
DOCUMENT = "72497a436b113ade453a5c5561ca953baae68e720ed7fffc3dfe7fd49a30693d"
NAMES = ["TI_bind", "TI_callback", "sock_init", "bind", "connect", "listen", "connect_request_callback",
         "accept", "sendmsg", "msg_send_complete", "msg_recv", "msg_recv_complete", "disconnect"]
SIZES = ["1", "100", "4096", "4097", "70000", "3000001", "7"]
OURS_ONLY = "/* ---- not in the document ---- */"


def lines_of(text):
    """Tokens without comments and includes, a line for each statement, brace or directive."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    lines, line = [], []
    for part in text.split("\n"):
        directive = part.lstrip().startswith("#")
        if re.match(r"\s*#\s*(include|pragma)\b", part):
            continue
        for token in re.findall(r"\"[^\"]*\"|\w+|->|&&|\|\||[=!<>+|-]=|<<|>>|\S", part):
            line.append(token)
            if not directive and token in ";{}":
                lines.append(" ".join(line))
                line = []
        if directive:
            lines.append(" ".join(line))
            line = []
    return lines + ([" ".join(line)] if line else [])


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as f:
        return f.read()


def ours(source, name):
    text = read(source, "examples/ti", "sample_" + name + ".c")
    if name == "sock_init":
        text = read(source, "examples/ti/sample.h").split(OURS_ONLY)[0] + text
    return lines_of(text)


def hash_of(samples):
    return hashlib.sha256("\n\n".join("\n".join(lines) for lines in samples).encode()).hexdigest()


# ---- the list ----


def changes(document, source):
    """The list's text for one sample."""
    out = []
    matcher = difflib.SequenceMatcher(None, document, source, autojunk=False)
    for kind, d1, d2, s1, s2 in matcher.get_opcodes():
        if kind != "equal":
            out.append(f"@ {s1} {s2 - s1}")
            out += ["- " + line for line in document[d1:d2]]
            out += ["+ " + line for line in source[s1:s2]]
    return out


def taken_back(source, listed):
    """The document's lines: source without the changes that are listed."""
    out, at = [], 0
    for hunk in re.split(r"^@ ", "\n".join(listed), flags=re.M)[1:]:
        head, *body = hunk.rstrip("\n").split("\n")
        start, count = map(int, head.split())
        added = [line[2:] for line in body if line.startswith("+ ")]
        if source[start:start + count] != added:
            raise ValueError("not as listed: " + " ".join(source[start:start + count]))
        out += source[at:start] + [line[2:] for line in body if line.startswith("- ")]
        at = start + count
    return out + source[at:]


def check_list(source):
    listed, name = {}, None
    for line in read(source, "examples/ti/differences").splitlines():
        if line.startswith("sample_"):
            name = line[len("sample_"):]
            listed[name] = []
        elif name:
            listed[name].append(line)
    if hash_of([taken_back(ours(source, n), listed[n]) for n in NAMES]) != DOCUMENT:
        raise ValueError("the changes taken back do not give the document's samples")
    for n in NAMES:
        print("sample_" + n)
        print("".join("  " + line + "\n" for line in listed[n] if line[0] != "@"), end="")
    count = sum(line[0] == "+" for lines in listed.values() for line in lines)
    print(f"{count} of {sum(len(ours(source, n)) for n in NAMES)} lines are not the document's")


def update(document, source):
    blocks = re.findall(r"\n#if 0\n(.*?)\n#endif // SOURCE", read(document), flags=re.S)
    samples = [lines_of(block) for block in blocks]
    with open(os.path.join(source, "examples/ti/differences"), "w", encoding="utf-8") as f:
        f.write("In what the samples differ from the document's: - its lines, + ours (see README.md).\n")
        for name, document in zip(NAMES, samples, strict=True):
            f.write("\n".join(["sample_" + name] + changes(document, ours(source, name))) + "\n")
    print("DOCUMENT =", hash_of(samples))


# ---- the programs ----


def run(build):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    where = os.path.join(build, "examples/ti")
    server = subprocess.Popen([where + "/ti_server", "127.0.0.1", port], stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout.readline() != "listening\n":
            return False
        client = subprocess.run([where + "/ti_client", "127.0.0.1", "127.0.0.1", port] + SIZES, timeout=90,
                                stdout=subprocess.PIPE, text=True)
        told = server.communicate(timeout=90)[0]
    finally:
        server.kill()
    print(client.stdout + "server: " + told, end="")
    return (client.returncode == 0 and server.returncode == 0 and told == f"{len(SIZES)} came\n" and
            client.stdout == "".join(size + " bytes there and back\n" for size in SIZES))


def run_echo(build):
    """The listener says nothing when it is ready: the sender comes until it does."""
    echo = [os.path.join(build, "examples/ti/ti_echo"), "127.0.0.1", "7472"]
    listener = subprocess.Popen(echo, stdout=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 60
        while subprocess.run(echo + ["a few words", "127.0.0.1"], stderr=subprocess.DEVNULL, timeout=90).returncode:
            if time.monotonic() > until:
                return False
        told = listener.communicate(timeout=90)[0]
    finally:
        listener.kill()
    print("echo: " + told, end="")
    return listener.returncode == 0 and told == "a few words\n"


if __name__ == "__main__":
    if sys.argv[1] == "--update":
        update(sys.argv[2], sys.argv[3])
    else:
        check_list(sys.argv[2])
        sys.exit(not (run(sys.argv[1]) and run_echo(sys.argv[1])))
