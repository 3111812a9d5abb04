#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/check-style on a small tree: silent as it is, and one planted breach of each kind.

usage: check_style_test.py TOOLS CLANG_FORMAT_FILE
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SPDX = '// SPDX-License-Identifier: BSD-3-Clause\n'


def function(lines, name='f'):
    return f'void {name}(void)\n{{\n' + '\tname();\n' * lines + '}\n'


def functions(lines, count):
    return SPDX + '\n'.join(function(lines, f'f{i}') for i in range(count))


def macro(lines):
    """One of so many, as clang-format lays it out."""
    text = ['#define M'] + ['\tx;'] * (lines - 1)
    text = [line + ' ' * (99 - len(line.expandtabs(8))) + '\\' for line in text[:-1]] + text[-1:]
    return SPDX + '\n'.join(text) + '\n'


TREE = {
    'a/a.c': SPDX + function(60),
    'a/many.c': functions(20, 30),
    'a/macro.h': macro(20),
    'roce/port/steer.c': SPDX + 'int s = SO_ATTACH_FILTER;\n',
    'base/atomic.h': SPDX + 'int a = __atomic_load_n(&x, 0);\n',
    'man/a.1': '.Dd January 1, 2026\n.Dt A 1\n.Os\n.Sh NAME\n.Nm a\n.Nd it\n',
    'tests/storm/differ/mutant/m.patch':
        '--- a/a/x.txt\n+++ b/a/x.txt\n@@ -1 +1 @@\n-one\n+two\n',
    'a/x.txt': 'one\n',
    'tools/check-layers': '#!/bin/sh\necho "check-layers: nothing"\n',
    'tools/check-howto': '#!/bin/sh\n',
}
# A file with a breach, and what the complaint begins with.
BREACHES = {
    'a/long.c': (SPDX + function(61), 'a/long.c:3: a function of 61 lines (at most 60)'),
    'a/file.c': (SPDX + 'int a;\n' * 900, 'a/file.c: 901 lines; cut it (at most 900)'),
    'a/licence.c': ('int a;\n', 'a/licence.c:1: the first line is not the SPDX line'),
    'a/many.c': (functions(26, 30), 'functions: nine of ten have up to 26 lines (at most 25)'),
    'a/macro.h': (macro(21), 'a/macro.h:21: a macro of more than 20 lines'),
    'a/layout.c': (SPDX + 'void f(void) {\n}\n', 'a/layout.c: clang-format would change it'),
    'a/off.c': (SPDX + '/* clang-format off */\n', 'a/off.c:2:/* clang-format off */: all code'),
    'a/env.c': (SPDX + 'char *s = getenv("S");\n', 'a/env.c:2:char *s = getenv("S");: getenv() in'),
    'a/bpf.c': (SPDX + 'int s = SO_ATTACH_BPF;\n', 'a/bpf.c:2:int s = SO_ATTACH_BPF;: no library'),
    'a/sync.c': (SPDX + 'int s = __sync_fetch_and_add(&x, 1);\n',
                 'a/sync.c:2:int s = __sync_fetch_and_add(&x, 1);: the model'),
    'man/b.1': (TREE['man/a.1'] + '.Xx\n', 'man/b.1:7:'),
    'a/x.txt': ('three\n', 'tests/storm/differ/mutant/m.patch: it does not apply'),
    'tools/check-layers': ('#!/bin/sh\necho it is so; exit 1\n', 'it is so'),
    'tools/check-howto': ('#!/bin/sh\necho broken >&2; exit 1\n', 'broken'),
}
SILENT = {'tools/check-layers': '#!/bin/sh\nexit 1\n'}

failures = 0


def fail(text):
    global failures
    failures += 1
    print(f'FAIL {text}', file=sys.stderr)


def run(tools, layout, changes):
    """What check-style says of the tree with these changes, and its status."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in {**TREE, **changes}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding='utf-8')
            (root / path).chmod(0o755)
        shutil.copy(os.path.join(tools, 'check-style'), root / 'tools/check-style')
        shutil.copy(layout, root / '.clang-format')
        for words in (['init', '-q'], ['add', '.']):
            subprocess.run(['git', '-c', 'safe.directory=*', *words], cwd=root, check=True)
        done = subprocess.run([root / 'tools/check-style'], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr


def main():
    tools, layout = sys.argv[1:]
    for tool in ('git', 'clang-format', 'mandoc'):
        if not shutil.which(tool):
            print(f'{tool} is not installed')
            sys.exit(77)
    status, out = run(tools, layout, {})
    if status or out != 'check-style: nothing to complain of\n':
        fail(f'the tree as it is: {status}: {out}')
    status, out = run(tools, layout, {path: text for path, (text, _) in BREACHES.items()})
    for _, wanted in BREACHES.values():
        if '\n' + wanted not in '\n' + out:
            fail(f'no complaint {wanted!r}')
    if status != 1 or not out.endswith(f'check-style: {len(BREACHES)} complaints\n'):
        fail(f'{status}: {out}')
    status, out = run(tools, layout, SILENT)
    if status != 1 or not out.startswith('tools/check-layers fails and says nothing'):
        fail(f'a tool that breaks down: {status}: {out}')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
