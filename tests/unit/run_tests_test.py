#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which tests tools/run-tests has meson run, by what it is told; meson is one that notes it.

usage: run_tests_test.py TOOL
"""
import json
import os
import subprocess
import sys
import tempfile

MESON = '''#!/usr/bin/env python3
import json, os, sys
TESTS = [{"name": n, "suite": ["weft:prog"]} for n in ("one", "two", "three")]
if sys.argv[1] == "introspect":
    print(json.dumps(TESTS))
    sys.exit()
args = sys.argv[2:]
base = args[args.index("--logbase") + 1]
build = args[args.index("-C") + 1]
rest = args[args.index("--suite") + 2:]
with open(os.path.join(build, "told"), "a") as f:
    f.write(" ".join(rest) + "\\n")
os.makedirs(os.path.join(build, "meson-logs"), exist_ok=True)
with open(os.path.join(build, "meson-logs", base + ".json"), "w") as f:
    for t in TESTS:
        if t["name"] in rest or not {"one", "two", "three"} & set(rest):
            f.write(json.dumps({"name": "weft:" + t["name"], "result": "OK"}) + "\\n")
'''
TABLE = "# why\ntwo  it cannot\n"

# Arguments before the build, those after "--"; what meson is told (None: it runs nothing), the counts.
CASES = [
    ([], [], "", "3 passed, 0 failed, 0 skipped"),
    ([], ["one"], "one", "1 passed, 0 failed, 0 skipped"),
    (["--without", "TABLE"], [], "one three", "2 passed, 0 failed, 1 skipped"),
    (["--without", "TABLE"], ["one", "two"], "one", "1 passed, 0 failed, 1 skipped"),
    (["--without", "TABLE"], ["one"], "one", "1 passed, 0 failed, 0 skipped"),
    (["--without", "TABLE"], ["two"], None, "0 passed, 0 failed, 1 skipped"),
    (["--without", "TABLE"], ["--timeout-multiplier", "4", "t*"],
     "--timeout-multiplier 4 three", "1 passed, 0 failed, 1 skipped"),
]


# Suites, and the last lines: one that is not in the build is a failure, and the remedy is told once.
ABSENT = [
    (["prog", "unit"], "FAILED: unit: this build has no such test\nREMEDY\n3 passed, 1 failed, 0 skipped\n"),
    (["unit", "model"], "FAILED: unit: this build has no such test\n"
     "FAILED: model: this build has no such test\nREMEDY\n0 passed, 2 failed, 0 skipped\n"),
]

# The end of another run, and the last lines with it; None: there is none.
SAVED = {"passed": 5, "notes": [], "failed": ["wire: four"], "skipped": [["wire: five", "why"]]}
ENDS = [
    (SAVED, "skipped: wire: five: why\nFAILED: wire: four\n8 passed, 1 failed, 1 skipped\n", 1),
    (None, "3 passed, 1 failed, 0 skipped\n", 1),
]


def run_here(tool, folder, before, after, suites=("prog",)):
    """The tool with our meson, in a folder that is its build."""
    path = os.path.join(folder, "meson")
    with open(path, "w") as f:
        f.write(MESON)
    os.chmod(path, 0o755)
    with open(os.path.join(folder, "TABLE"), "w") as f:
        f.write(TABLE)
    open(os.path.join(folder, "build.ninja"), "w").close()
    return subprocess.run(
        [tool, *[os.path.join(folder, w) if w in ("TABLE", "END") else w for w in before], folder,
         *suites, "--", *after], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env=dict(os.environ, PATH=folder + ":" + os.environ["PATH"]))


def ends_that_are_added(tool):
    """How many of ENDS come out otherwise; and what --into writes, --from must read."""
    bad = 0
    for saved, lines, status in ENDS:
        with tempfile.TemporaryDirectory() as folder:
            if saved:
                with open(os.path.join(folder, "END"), "w") as f:
                    json.dump(saved, f)
            out = run_here(tool, folder, ["--from", "END"], [])
            if not out.stdout.endswith(lines) or out.returncode != status:
                print(f"--from {saved}: exit status {out.returncode};\n{out.stdout}{out.stderr}")
                bad += 1
    with tempfile.TemporaryDirectory() as folder:
        first = run_here(tool, folder, ["--into", "END", "--without", "TABLE"], [])
        out = run_here(tool, folder, ["--from", "END"], [])
        if "passed" in first.stdout or \
                not out.stdout.endswith("skipped: END: two: it cannot\n5 passed, 0 failed, 1 skipped\n"):
            print(f"--into, then --from:\n{first.stdout}{out.stdout}{out.stderr}")
            bad += 1
    return bad


def suites_that_are_absent(tool):
    """How many of ABSENT come out otherwise."""
    bad = 0
    for suites, lines in ABSENT:
        with tempfile.TemporaryDirectory() as folder:
            out = run_here(tool, folder, [], [], suites)
        said = out.stdout.splitlines(keepends=True)
        last = "".join("REMEDY\n" if "'tools/setup test'" in line else line for line in said)
        if not last.endswith(lines) or last.count("REMEDY") != 1 or out.returncode != 1:
            print(f"{suites}: exit status {out.returncode};\n{out.stdout}{out.stderr}")
            bad += 1
    return bad


def main():
    tool = os.path.abspath(sys.argv[1])
    bad = 0
    for before, after, told, counts in CASES:
        with tempfile.TemporaryDirectory() as folder:
            out = run_here(tool, folder, before, after)
            was = None
            if os.path.exists(os.path.join(folder, "told")):
                with open(os.path.join(folder, "told")) as f:
                    was = f.read().strip("\n")
        if was != told or not out.stdout.endswith(counts + "\n"):
            print(f"{before} {after}: meson was told {json.dumps(was)}, not {json.dumps(told)};\n"
                  f"{out.stdout}{out.stderr}")
            bad += 1
    bad += ends_that_are_added(tool) + suites_that_are_absent(tool)
    print(f"{len(CASES) + len(ENDS) + 1 + len(ABSENT)} cases, {bad} failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
