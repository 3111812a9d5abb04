#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/check-howto on a small tree: silent as it is, and one planted breach of each kind.

usage: check_howto_test.py TOOL
"""
import pathlib
import subprocess
import sys
import tempfile

PAGE = '''# A page

## Files

At most 2 files of the tree change:

- `a/table.c`: a row
- `a/op_NAME.c`: what it does

## And

- `a/else.c`: not in the list
'''
PATCH = '''diff --git a/a/table.c b/a/table.c
--- a/a/table.c
+++ b/a/table.c
@@ -1 +1,2 @@
 one
+two
diff --git a/a/op_toy.c b/a/op_toy.c
new file mode 100644
--- /dev/null
+++ b/a/op_toy.c
@@ -0,0 +1 @@
+toy
'''
TREE = {'docs/howto/page.md': PAGE, 'tests/howto/page.patch': PATCH, 'a/table.c': 'one\n',
        'a/else.c': '\n', 'a/b.c': '\n'}
ROW = '- `a/table.c`: a row\n'

# What is changed (None: it is not there), and the complaint.
BREACHES = [
    ({'docs/howto/page.md': '# A page\n\n- `a/table.c`: a row\n'},
     'docs/howto/page.md: it has no list of files under "## Files"'),
    ({'docs/howto/page.md': PAGE.replace(ROW, ROW + '- `a/gone.c`: it\n'),
      'tests/howto/page.patch': None}, 'docs/howto/page.md: there is no a/gone.c'),
    ({'docs/howto/page.md': PAGE.replace('At most 2', 'At most 0')},
     'docs/howto/page.md: 1 files of the tree change, at most 0 may'),
    ({'a/table.c': 'three\n'}, 'docs/howto/page.md: tests/howto/page.patch does not apply'),
    ({'docs/howto/page.md': PAGE.replace(ROW, '')},
     'docs/howto/page.md: its toy changes a/table.c, which it does not name'),
    ({'docs/howto/page.md': PAGE.replace(ROW, ROW + '- `a/b.c`: more\n')},
     'docs/howto/page.md: it names a/b.c, which its toy does not change'),
    ({'docs/howto/page.md': PAGE.replace('op_NAME.c', 'mr_NAME.c')},
     'docs/howto/page.md: its toy adds a/op_toy.c, which it does not name'),
    ({'docs/howto/page.md': PAGE.replace(ROW, ROW + '- `a/mr_NAME.c`: more\n')},
     'docs/howto/page.md: it names a/mr_NAME.c, which its toy does not add'),
    ({'docs/howto/page.md': None},
     'tests/howto/page.patch: there is no page docs/howto/page.md'),
]


def check(tool, files):
    """What the tool says of such a tree, and its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            if text is not None:
                at = pathlib.Path(folder) / name
                at.parent.mkdir(parents=True, exist_ok=True)
                at.write_text(text)
        done = subprocess.run([tool, '--root', folder], capture_output=True, text=True, check=False)
        return done.stdout.splitlines() + done.stderr.splitlines(), done.returncode


def main():
    tool, failed = sys.argv[1], 0
    if check(tool, TREE) != ([], 0):
        print('not silent:', check(tool, TREE))
        failed += 1
    if check(tool, {**TREE, 'tests/howto/page.patch': None}) != ([], 0):
        print('a page without a toy is no breach')
        failed += 1
    for change, complaint in BREACHES:
        said, status = check(tool, {**TREE, **change})
        if complaint not in said or status != 1:
            print(f'not found: {complaint}; said: {said}')
            failed += 1
    print(f'{len(BREACHES) + 2 - failed} passed, {failed} failed, 0 skipped')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
