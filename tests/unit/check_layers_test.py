#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/check-layers on a small tree: silent as it is, and one planted breach of each kind.

usage: check_layers_test.py TOOL CC
"""
import os
import subprocess
import sys
import tempfile

TABLE = '''# Rooms
| room | knows | may include |
|---|---|---|
| `low/` | l | |
| `side/` | s | |
| `mid/` | m | `low/` |
| `high/` | h | `mid/` |
| `daemon/` | d | `mid/` |

| header | speaks for several files, because |
|---|---|
| `mid/all.h` | it is the interface |
'''
TREE = {
    'docs/layers.md': TABLE,
    'low/a.h': 'int a(void);\n',
    'low/a.c': '#include "low/a.h"\n\nint a(void)\n{\n\treturn 1;\n}\n',
    'side/s.h': 'int s(void);\n',
    'side/s.c': '#include "side/s.h"\n\nint s(void)\n{\n\treturn 1;\n}\n',
    'mid/all.h': '#include "low/a.h"\n\nint b(void);\n',
    'mid/b.c': '#include "mid/all.h"\n\nint b(void)\n{\n\treturn a(); /* c() */\n}\n',
    'high/c.h': 'int c(void);\n',
    'high/c.c': '#include "high/c.h"\n\n#include "mid/all.h"\n\nint c(void)\n{\n\treturn b();\n}\n',
    'tests/t.c': '#include "high/c.h"\n#include "low/a.h"\n',
}


def file_of(number, of):
    """One of many modules that call each other in a circle."""
    after = (number + 1) % of
    return {f'low/m{number}.h': f'int m{number}(void);\n',
            f'low/m{number}.c': f'#include "low/m{number}.h"\n\n#include "low/m{after}.h"\n\n'
                                f'int m{number}(void)\n{{\n\treturn m{after}();\n}}\n'}


def circle(of):
    files = {}
    for number in range(of):
        files.update(file_of(number, of))
    return files


DEBT = TABLE + '\n| room | not cut yet |\n|---|---|\n| `low/` | 34 modules, a circle of 11 |\n'

# What is changed, and the complaint.
BREACHES = [
    ({'low/a.c': '#include "low/a.h"\n\n#include "mid/all.h"\n'},
     'low/a.c:3: low/ may not include mid/ (mid/all.h)'),
    ({'high/c.c': '#include "high/c.h"\n\n#include "side/s.h"\n'},
     'high/c.c:3: high/ may not include side/ (side/s.h)'),
    ({'high/c.c': '#include "high/c.h"\n\n#include "mid/all.h"\n\nint c(void)\n{\n\treturn a();\n}\n'},
     'high/c.c:7: high/ may not call a() of low/ (low/a.h)'),
    ({'low/a.h': 'int a(void);\nint s(void);\n'},
     'low/a.h:2: s() is of side/s.c: its prototype belongs in side/s.h'),
    ({'docs/layers.md': TABLE.replace('| s | |', '| s | `mid/` |')},
     'docs/layers.md:5: side/ may include mid/, which is not above it in the table'),
    ({'docs/layers.md': TABLE.replace('| `high/`', '| `low/` | again | |\n| `high/`')},
     'docs/layers.md:7: low/ is there twice'),
    ({'new/n.c': 'int n;\n'}, 'new/n.c:1: new/ is no room of docs/layers.md'),
    ({f'low/f{n}.c': f'int f{n};\n' for n in range(32)},
     'low:1: 33 modules in one folder (at most 32)'),
    (circle(11), 'low:1: 11 modules call each other in a circle (at most 10): '
                 'm0 m1 m10 m2 m3 m4 m5 m6 m7 m8 m9'),
    ({'docs/layers.md': DEBT, **circle(12)},
     'low:1: 12 modules call each other in a circle (at most 11): '
     'm0 m1 m10 m11 m2 m3 m4 m5 m6 m7 m8 m9'),
]
# What is no breach.
FINE = [{}, circle(10), {'docs/layers.md': DEBT, **circle(11)},
        {'docs/layers.md': DEBT, **{f'low/f{n}.c': f'int f{n};\n' for n in range(33)}}]

failures = 0


def fail(text):
    global failures
    failures += 1
    print(f'FAIL {text}', file=sys.stderr)


def run(tool, changes, *args):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**TREE, **changes}.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
        done = subprocess.run([sys.executable, tool, '--root', root, *args], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def check_weftd(tool, cc):
    with tempfile.TemporaryDirectory() as folder:
        for name, wrong in (('a', False), ('c', True)):
            source, weftd = os.path.join(folder, 'x.c'), os.path.join(folder, 'weftd')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(f'int {name}(void)\n{{\n\treturn 0;\n}}\nint main(void)\n{{\n\treturn 0;\n}}\n')
            subprocess.run([*cc, '-o', weftd, source], check=True)
            status, out = run(tool, {}, '--weftd', weftd)
            wanted = f'{weftd}:1: c() of high/ (high/c.c) is linked into weftd\n'
            if (status != 0) != wrong or (wanted in out) != wrong:
                fail(f'weftd with {name}(): {status}: {out}')


def main():
    tool, cc = sys.argv[1], sys.argv[2:]
    for changes in FINE:
        status, out = run(tool, changes)
        if status or 'nothing to complain of' not in out:
            fail(f'{sorted(changes)}: {status}: {out}')
    for changes, wanted in BREACHES:
        status, out = run(tool, changes)
        lines = out.splitlines()
        if status != 1 or lines != [wanted, 'check-layers: 1 complaints']:
            fail(f'wanted {wanted!r}; {status}: {out}')
    check_weftd(tool, cc)
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
