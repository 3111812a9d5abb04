#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of a tutorial in one shell, and compares what they print with the page.

usage: tutorial.py BUILD PAGE

In blocks of ```console a line that begins with "$ " is a command; the lines after it are what it
prints on both outputs: "..." alone stands for any lines, within a line for any text.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.join(ROOT, 'tools'))

import pair  # noqa: E402

NEEDED = {'subnet-tutorial.md': ['opensm', 'ibstat', 'saquery'],
          'two-hosts.md': ['rping', 'ibv_devinfo', 'ip', 'nsenter']}
SECONDS = 60


def commands(page):
    """(command, [lines it prints]) of each console block, in order."""
    found = []
    for block in re.findall(r'```console\n(.*?)```', page, re.S):
        for line in block.splitlines():
            if line.startswith('$ '):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def pattern(lines):
    parts = [r'(?:.*\n)*' if line == '...'
             else '.*'.join(map(re.escape, line.split('...'))) + r'\n' for line in lines]
    return re.compile(''.join(parts))


def run(command, env, cwd):
    """What it prints; what it leaves running must have closed its outputs."""
    done = subprocess.run(['timeout', str(SECONDS), 'bash', '-c', command], env=env, cwd=cwd,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout + ('' if not done.stdout or done.stdout.endswith('\n') else '\n')


def main():
    build, page = os.path.abspath(sys.argv[1]), sys.argv[2]
    for name in NEEDED[os.path.basename(page)]:
        if not shutil.which(name, path=os.environ['PATH'] + ':/usr/sbin'):
            print(f'{name} is not installed: tools/setup test')
            return 77
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, PATH=f'{build}:{ROOT}/examples/hosts:{os.environ["PATH"]}:/usr/sbin',
                   WEFT_HOSTS=home + '/hosts',
                   WEFT_RUNTIME_DIR=home + '/run', OSM_CACHE_DIR=home, OSM_TMP_DIR=home)
        env.pop('WEFT_FABRIC', None)
        env.pop('WEFT_NODE', None)
        runtime = pair.sanitizer_runtime(build)
        if runtime:
            env.update(LD_PRELOAD=runtime,
                       ASAN_OPTIONS='detect_leaks=0:verify_asan_link_order=0')
        os.mkdir(home + '/run', 0o700)
        failed = 0
        try:
            with open(page, encoding='utf-8') as f:
                steps = commands(f.read())
            for command, lines in steps:
                text = run(command, env, home)
                if not pattern(lines).fullmatch(text):
                    failed += 1
                    print(f'FAIL: $ {command}\nwanted:\n' + '\n'.join(lines) + f'\ngot:\n{text}')
        finally:
            run('pkill -9 -F opensm.pid; weft down -F lab; pkill -F server; '
                'hosts one weft down; hosts two weft down; hosts down', env, home)
    print(f'{len(steps)} commands, {failed} failed')
    return 1 if failed or not steps else 0


if __name__ == '__main__':
    sys.exit(main())
