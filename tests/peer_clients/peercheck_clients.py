#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The sample clients, compiled as --cflags says without a warning, for each generation and device:
weft peercheck finds nothing wrong, and works what it can.

usage: peercheck_clients.py BUILD SOURCES [--whole]

--whole    all scenarios, all generations of each
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

# What each client does not do, and nothing else may be left out.
NEVER_TAKES = {15, 16, 17, 18, 19}
NOT_RUN = {'nv': {20}, 'nv_keep': NEVER_TAKES, 'beside/nv': NEVER_TAKES, 'kfd': {20}, 'kfd_priv': {20},
           'kfd_own': {20}, 'vma': NEVER_TAKES}
QUICK = [('nv', g) for g in 'ABCDE'] + [('nv_keep', 'E'), ('beside/nv', 'E'), ('kfd', 'A'), ('kfd', 'E'),
                                        ('kfd_priv', 'D'), ('kfd_own', 'A'), ('vma', 'A'), ('vma', 'D')]


def check(weft, sources, folder, client, generation, options):
    """What is wrong, or None."""
    library = os.path.join(folder, f"{client.replace('/', '-')}-{generation}.so")
    flags = subprocess.run([weft, 'peercheck', '--cflags', generation], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    done = subprocess.run(['cc', '-std=gnu11', '-Wall', '-Wextra', '-Werror', '-O1', *flags, '-o',
                           library, os.path.join(sources, client + '.c')],
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return done.stderr
    done = subprocess.run([weft, 'peercheck', '--json', '--jobs', '2', *options, library],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not done.stdout:
        return f'exit code {done.returncode}: {done.stderr}'
    report = json.loads(done.stdout)
    wrong = [f"{v['scenario']}: P{v['rule']} {v['text']}" for v in report['violations']]
    wrong += [f'{g}: P{r}' for g, r in report['broken_in_generation'].items() if r]
    left_out = {r['rule'] for r in report['rules'] if r['result'] == 'not run'}
    if left_out != NOT_RUN[client]:
        wrong.append(f'not run: {sorted(left_out)}')
    if report['generation'] != generation or done.returncode:
        wrong.append(f"generation {report['generation']}, exit code {done.returncode}")
    return '\n'.join(wrong) or None


def main():
    weft, sources = os.path.join(sys.argv[1], 'weft'), sys.argv[2]
    whole = '--whole' in sys.argv
    runs = [(c, g) for c in NOT_RUN for g in 'ABCDE'] if whole else QUICK
    options = [] if whole else ['--quick']
    failed = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = {run: pool.submit(check, weft, sources, folder, *run, options) for run in runs}
        for (client, generation), future in done.items():
            wrong = future.result()
            failed += wrong is not None
            if wrong:
                print(f'FAIL: {client}, generation {generation}: {wrong}', flush=True)
    print(f'{len(runs)} clients checked, {failed} not as they should be')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
