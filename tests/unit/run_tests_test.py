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


def main():
    tool = os.path.abspath(sys.argv[1])
    bad = 0
    for before, after, told, counts in CASES:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "meson")
            with open(path, "w") as f:
                f.write(MESON)
            os.chmod(path, 0o755)
            with open(os.path.join(folder, "TABLE"), "w") as f:
                f.write(TABLE)
            open(os.path.join(folder, "build.ninja"), "w").close()
            out = subprocess.run(
                [tool, *[os.path.join(folder, w) if w == "TABLE" else w for w in before], folder,
                 "prog", "--", *after], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                env=dict(os.environ, PATH=folder + ":" + os.environ["PATH"]))
            was = None
            if os.path.exists(os.path.join(folder, "told")):
                with open(os.path.join(folder, "told")) as f:
                    was = f.read().strip("\n")
        if was != told or not out.stdout.endswith(counts + "\n"):
            print(f"{before} {after}: meson was told {json.dumps(was)}, not {json.dumps(told)};\n"
                  f"{out.stdout}{out.stderr}")
            bad += 1
    print(f"{len(CASES)} cases, {bad} failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
