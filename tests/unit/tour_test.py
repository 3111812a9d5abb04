#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What README's tour runs is there after make demo: each program's package is in tools/setup's list.

usage: tour_test.py README SETUP
"""
import os
import re
import shutil
import subprocess
import sys

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
FEW = 5  # the tour has at least so many programs, else this reads it wrongly


def tour(readme):
    with open(readme) as f:
        section = f.read().split("## Ten lines of tour", 1)[1].split("\n## ", 1)[0]
    return "\n".join(re.findall(r"```sh\n(.*?)```", section, re.S))


def programs(text):
    """First words of commands, and what weft run starts."""
    found = set()
    for line in text.split("\n"):
        for command in re.split(r"[;&]", line.split("#")[0]):
            words = command.split(" -- ", 1)[-1].split()
            if words and re.fullmatch(r"[a-z][a-z_]*", words[0]):
                found.add(words[0])
    return found


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def package_of(program):
    """Of a program that a package has installed; None: of the shell, or of every Debian."""
    path = shutil.which(program, path=PATH)
    if not path:
        return None
    for name in (path, os.path.realpath(path), "/usr" + path):
        package = said("dpkg-query", "-S", name).split(":")[0]
        if package:
            essential = said("dpkg-query", "-W", "-f=${Essential}", package)
            return None if essential == "yes" else package
    return None


def main():
    readme, setup = sys.argv[1:]
    if not shutil.which("dpkg-query"):
        print("no dpkg here, that knows which package has a program")
        return 77
    names = programs(tour(readme))
    packages = {p: package_of(p) for p in names}
    demo = said(setup, "--list", "demo").split()
    missing = [f"{p} of {q}" for p, q in packages.items() if q and q not in demo]
    if missing:
        print("the tour runs, and make demo does not install:", ", ".join(missing))
        return 1
    if sum(q is not None for q in packages.values()) < FEW:
        print(f"of {' '.join(sorted(names))} few are installed here: tools/setup test")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
