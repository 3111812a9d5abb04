#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the files that a page of docs/howto/ names against those of its toy, which the tree does
not know.

usage: toy_files.py SOURCE PAGE FOLDER [ROOM...]

FOLDER is that of the toy in tests/howto/; it includes nothing of the ROOMs.
"""
import pathlib
import re
import sys

ROOMS = ('hca', 'pages', 'verbs', 'daemon', 'peermem')

root = pathlib.Path(sys.argv[1])
page = (root / 'docs/howto' / (sys.argv[2] + '.md')).read_text()
folder = root / 'tests/howto' / sys.argv[3]
section = re.search(r'^## Files\n(.*?)(?=^## )', page, re.S | re.M)[1]
limit = int(re.search(r'At most (\d+) files', section)[1])
named = set(re.findall(r'^- `([^`]+)`', section, re.M))
toy = {str(f.relative_to(root)) for f in folder.iterdir()}
# What the tree itself would have to know: the toy stands nowhere in it.
known = {str(f.relative_to(root)) for room in ROOMS
         for f in (root / room).rglob('*.[ch]') if re.search(r'\btoy\b', f.read_text())}
includes = {(f.name, i) for f in folder.iterdir()
            for i in re.findall(r'^#include "([^"]+)"', f.read_text(), re.M)}
forbidden = {(f, i) for f, i in includes for room in sys.argv[4:] if i.startswith(room + '/')}

for f in sorted(named - toy):
    print(f'the page names {f}, which the toy does not have')
for f in sorted((toy | known) - named):
    print(f'the toy has {f}, which the page does not name')
for f, i in sorted(forbidden):
    print(f'{f} includes {i}, of a room that it must not know')
if len(toy | known) > limit:
    print(f'{len(toy | known)} files, at most {limit}')
sys.exit(named != toy | known or len(named) > limit or bool(forbidden))
