#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the files that docs/howto/new-kind-of-memory.md names against those of its toy.

usage: kind_files.py SOURCE
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = (root / 'docs/howto/new-kind-of-memory.md').read_text()
section = re.search(r'^## Files\n(.*?)(?=^## )', page, re.S | re.M)[1]
limit = int(re.search(r'At most (\d+) files', section)[1])
named = set(re.findall(r'^- `([^`]+)`', section, re.M))
toy = {str(f.relative_to(root)) for f in (root / 'tests/howto/memory').iterdir()}
# What the tree itself would have to know: the toy stands nowhere in it.
known = {str(f.relative_to(root)) for room in ('hca', 'pages', 'verbs', 'daemon', 'peermem')
         for f in (root / room).rglob('*.[ch]') if re.search(r'\btoy\b', f.read_text())}

for f in sorted(named - toy):
    print(f'the page names {f}, which the toy does not have')
for f in sorted((toy | known) - named):
    print(f'the toy has {f}, which the page does not name')
if len(toy | known) > limit:
    print(f'{len(toy | known)} files, at most {limit}')
sys.exit(named != toy | known or len(named) > limit)
