#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/check-layers on a small tree: silent as it is, and one planted breach of each kind.

usage: check_layers_test.py TOOL CC
"""
import contextlib
import io
import os
import runpy
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
| `face/` | f | |
| `one/` | o | `face/` |
| `two/` | t | `face/` |

| header | speaks for several files, because |
|---|---|
| `mid/all.h` | it is the interface |

| calls | in | because |
|---|---|---|
| `fork()` `vfork()` | `low/a.c` | of one place |
| `poll()` | all but `one/` | of the floor |

| header | its user |
|---|---|
| `face/alone.h` | one |
'''
TREE = {
    'docs/layers.md': TABLE,
    'low/a.h': 'int a(void);\nstatic inline int i(void)\n{\n\treturn 1;\n}\n',
    'low/a.c': '#include "low/a.h"\n\nint a(void)\n{\n\treturn fork() + poll();\n}\n',
    'side/s.h': 'int s(void);\n',
    'side/s.c': '#include "side/s.h"\n\nint s(void)\n{\n\treturn 1;\n}\n',
    'mid/all.h': '#include "low/a.h"\n\nint b(void);\n',
    'mid/b.c': '#include "mid/all.h"\n\nint b(void)\n{\n\treturn a(); /* c() */\n}\n',
    'high/c.h': 'int c(void);\n',
    'high/c.c': '#include "high/c.h"\n\n#include "mid/all.h"\n\nint c(void)\n{\n\treturn b();\n}\n',
    'daemon/d.c': '#include <stdio.h>\n',
    'face/both.h': 'int both(void);\n',
    'face/alone.h': 'int alone(void);\n',
    'one/o.c': '#include "face/alone.h"\n#include "face/both.h"\n',
    'two/t.c': '#include "face/both.h"\n',
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


def calls(what):
    return f'#include "mid/all.h"\n\nint c(void)\n{{\n\treturn {what}();\n}}\n'


DEBT = TABLE + '\n| room | not cut yet |\n|---|---|\n| `low/` | 34 modules, a circle of 11 |\n'

# What is changed, and the complaint.
BREACHES = [
    ({'low/a.c': TREE['low/a.c'] + '#include "mid/all.h"\n'},
     'low/a.c:7: low/ may not include mid/ (mid/all.h)'),
    ({'high/c.c': '#include "high/c.h"\n\n#include "side/s.h"\n'},
     'high/c.c:3: high/ may not include side/ (side/s.h)'),
    ({'high/c.c': calls('a')}, 'high/c.c:5: high/ may not call a() of low/ (low/a.h)'),
    ({'low/a.c': TREE['low/a.c'] + '#include <mid/all.h>\n'},
     'low/a.c:7: low/ may not include mid/ (mid/all.h)'),
    ({'low/a.c': TREE['low/a.c'] + '#include "../mid/all.h"\n'},
     'low/a.c:7: mid/all.h is included by its path from the root'),
    ({'mid/b.c': TREE['mid/b.c'] + '#include "low/a.c"\n'}, 'mid/b.c:7: low/a.c is no header'),
    ({'low/more.inc': ''}, 'low/more.inc:1: code that is neither .c nor .h'),
    ({'main.c': ''}, 'main.c:1: ./ is no room of docs/layers.md'),
    ({'builder/n.c': ''}, 'builder/n.c:1: builder/ is no room of docs/layers.md'),
    ({'high/c.c': calls('i')}, 'high/c.c:5: high/ may not call i() of low/ (low/a.h)'),
    ({'high/c.c': 'int a(void);\n' + calls('a')},
     'high/c.c:1: high/ may not call a() of low/ (low/a.h)',
     'high/c.c:1: a() is of low/a.c: its prototype belongs in low/a.h'),
    ({'high/c.c': calls('s').replace('{', '{\n\tint s(void);\n')},
     'high/c.c:5: s() of side/s.c is called without its header'),
    ({'docs/layers.md': TABLE.replace('| `daemon/`', '| `gone/` | | |\n| `daemon/`')},
     'docs/layers.md:8: gone/ has no code'),
    ({'docs/layers.md': TABLE.replace('`mid/all.h`', '`mid/every.h`')},
     'docs/layers.md:15: there is no mid/every.h',
     'mid/all.h:3: b() is of mid/b.c: its prototype belongs in mid/b.h'),
    ({'high/c.c': calls('vfork')}, 'high/c.c:5: vfork() is not for this file (docs/layers.md:19)'),
    ({'low/a.c': ''}, 'docs/layers.md:19: low/a.c has none of them'),
    ({'one/o.c': TREE['one/o.c'] + '\nint o(void)\n{\n\treturn poll();\n}\n'},
     'one/o.c:6: poll() is not for this file (docs/layers.md:20)'),
    ({'two/t.c': ''},
     'face/both.h:1: its users are: one; docs/layers.md has those of fewer than two'),
    ({'two/t.c': '#include "face/alone.h"\n#include "face/both.h"\n'},
     'face/alone.h:1: its users are: one two; docs/layers.md has those of fewer than two'),
    ({'low/a.h': TREE['low/a.h'] + 'int s(void);\n'},
     'low/a.h:6: s() is of side/s.c: its prototype belongs in side/s.h'),
    ({'docs/layers.md': TABLE.replace('| s | |', '| s | `mid/` |')},
     'docs/layers.md:5: side/ may include mid/, which is not above it in the table'),
    ({'docs/layers.md': TABLE.replace('| `daemon/`', '| `low/` | again | |\n| `daemon/`')},
     'docs/layers.md:8: low/ is there twice'),
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
FINE = [{}, {'out/meson-private/x': '', 'out/n.c': ''}, {'build-root/usr/include/n.h': 'int n;\n'},
        circle(10),
        {'docs/layers.md': DEBT, **circle(11)},
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
        said, status, sys.argv = io.StringIO(), 0, [tool, '--root', root, *args]
        # In this process: to start an interpreter for each tree takes longer than to look at it.
        with contextlib.redirect_stdout(said):
            try:
                runpy.run_path(tool, run_name='__main__')
            except SystemExit as end:
                status = end.code
        return status, said.getvalue()


def check_weftd(tool, cc):
    with tempfile.TemporaryDirectory() as folder:
        for name, wrong in (('a', False), ('c', True)):
            source, weftd = os.path.join(folder, 'x.c'), os.path.join(folder, 'weftd')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(''.join(f'int {f}(void)\n{{\n\treturn 0;\n}}\n' for f in (name, 'main')))
            subprocess.run([*cc, '-o', weftd, source], check=True)
            status, out = run(tool, {}, '--weftd', weftd)
            wanted = f'{weftd}:1: c() of high/ (high/c.c) is linked into weftd\n'
            if (status != 0) != wrong or (wanted in out) != wrong:
                fail(f'weftd with {name}(): {status}: {out}')
        subprocess.run([*cc, '-s', '-o', weftd, source], check=True)
        status, out = run(tool, {}, '--weftd', weftd)
        if not status or 'it has no symbols to look at' not in out:
            fail(f'a stripped weftd: {status}: {out}')


def main():
    tool, cc = sys.argv[1], sys.argv[2:]
    for changes in FINE:
        status, out = run(tool, changes)
        if status or 'nothing to complain of' not in out:
            fail(f'{sorted(changes)}: {status}: {out}')
    for changes, *wanted in BREACHES:
        status, out = run(tool, changes)
        lines = out.splitlines()
        if status != 1 or lines != [*wanted, f'check-layers: {len(wanted)} complaints']:
            fail(f'wanted {wanted!r}; {status}: {out}')
    check_weftd(tool, cc)
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
