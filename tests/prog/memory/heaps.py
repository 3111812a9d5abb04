#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs whose heap is registered and deregistered behind their back all the time.

usage: heaps.py REGISTRAR.so, in a world of with_weftd.sh.  Python computes something that uses its
heap hard, with two threads, and must come to the same result as without; Java's keytool, where
there is one, makes a key and lists it.
"""

import os
import shutil
import subprocess
import sys
import tempfile

WORK = """
import hashlib, random, threading
def churn(seed, out):
    r = random.Random(seed)
    d, digest = {}, hashlib.sha256()
    for i in range(12000):
        k = r.randrange(3000)
        if k % 3 == 0:
            d.pop(k, None)
        else:
            d[k] = [r.random() for _ in range(k % 50)] + [str(i) * (k % 20)]
        if i % 100 == 0:
            digest.update(repr(sorted(d.items())[:20]).encode())
    digest.update(repr(sorted(d.items())).encode())
    out.append((seed, digest.hexdigest()))
out = []
threads = [threading.Thread(target=churn, args=(s, out)) for s in (1, 2)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(out))
"""


def run(command, env):
    end = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=100)
    if end.returncode != 0:
        sys.exit(f"{command[0]} ended with {end.returncode}: {end.stderr[-1000:]}")
    return end.stdout


class Watched:
    """Runs a command with the registrar, and adds up what that says it did."""

    def __init__(self, registrar, folder):
        self.out = os.path.join(folder, "registrar")
        self.env = dict(os.environ, LD_PRELOAD=registrar, REGISTRAR_OUT=self.out,
                        WEFT_SHARE="auto" if self.user_only() else "always")

    @staticmethod
    def user_only():
        """Then system calls of the program would fail, which it cannot know."""
        return os.geteuid() != 0

    def run(self, command):
        text = run(command, self.env)
        with open(self.out) as f:
            words = f.read().split()
        os.unlink(self.out)
        registered, mapped = int(words[1]), int(words[3])
        print(f"{command[0]}: registered {registered} mapped {mapped}")
        if registered < 5 or (not self.user_only() and mapped < 5):
            sys.exit("the heap was not registered, or not mapped")
        return text


def main():
    registrar = os.path.abspath(sys.argv[1])
    os.environ["PYTHONMALLOC"] = "malloc"  # objects lie in the heap
    with tempfile.TemporaryDirectory() as folder:
        watched = Watched(registrar, folder)
        python = [sys.executable, "-c", WORK]
        if watched.run(python) != run(python, os.environ):
            sys.exit("Python came to another result")
        keytool = shutil.which("keytool")
        if not keytool:
            print("no Java: left out")
            return
        store = ["-keystore", os.path.join(folder, "store"), "-storepass", "sesame"]
        small = ["-J-Xmx48m", "-J-Xms48m", "-J-XX:+UseSerialGC"]
        watched.run([keytool] + small + ["-genkeypair", "-alias", "a", "-dname", "CN=a",
                                         "-keyalg", "RSA", "-keysize", "2048"] + store)
        text = run([keytool] + small + ["-list"] + store, os.environ)
        if "PrivateKeyEntry" not in text:
            sys.exit("Java lost the key: " + text)


if __name__ == "__main__":
    main()
