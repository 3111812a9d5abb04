#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plants one fault after the other into a client: weft peercheck must report each under its rule,
and nothing else, but what may follow from it; the scenario that it names must show it again.

usage: peercheck_faults.py BUILD SOURCES [FAULT...] [--every N] [--sanitize] [--jobs N]

--every N    each Nth fault and some more alone, and the client without one
--sanitize   the client compiled for AddressSanitizer and UndefinedBehaviorSanitizer
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

SANITIZED_ALONE = {'P22_OVERFLOW'}
# What needs the core to do the undoing in the callback: a generation without INVALIDATE_UNMAPS;
# and to ask for what is only read as the first one does, without write.
OLDER = {'P17_TWICE': 'D', 'P5_READING': 'A'}
# It leaves out what no other one does: the end of a range that lies across more pages than it has.
ALWAYS = {'P8_EDGE'}


def faults(path):
    """The names of enum fault, in order."""
    with open(path, encoding='utf-8') as file:
        body = re.search(r'enum fault \{(.*?)\};', file.read(), re.S).group(1)
    return re.findall(r'\b(NONE|P\d+_\w+)\b', re.sub(r'/\*.*?\*/', '', body))


def compile_client(weft, source, generation, to, sanitize):
    flags = subprocess.run([weft, 'peercheck', '--cflags', generation], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    more = ['-fsanitize=address,undefined'] if sanitize else []
    subprocess.run(['cc', '-std=gnu11', '-Wall', '-Wextra', '-Werror', '-O1', '-g', *more, *flags,
                    '-o', to, source], check=True)


def check(weft, client, number, *options):
    env = dict(os.environ, WEFT_PARAM_fault=str(number))
    done = subprocess.run([weft, 'peercheck', '--json', '--jobs', '2', *options, client], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    if done.returncode not in (0, 1):
        raise RuntimeError(f'exit code {done.returncode}: {done.stderr}')
    return json.loads(done.stdout), done.returncode


def judge(weft, client, number, name):
    """What is wrong with the report of a fault, or None."""
    report, code = check(weft, client, number, '--quick')
    rules = [v['rule'] for v in report['violations'] if not v['after']]
    if name == 'NONE':
        return None if not rules and code == 0 else f'reports {rules} of a client without a fault'
    rule = int(re.match(r'P(\d+)_', name).group(1))
    follow = {v['after'] for v in report['violations'] if v['after']}
    if rules != [rule] or follow - {rule} or code != 1:
        return (f'reports {rules}, exit code {code}: ' +
                '; '.join(v['scenario'] + ': ' + v['text'] for v in report['violations']))
    found = report['violations'][0]
    again, _ = check(weft, client, number, '--only', found['scenario'])
    rules = [v['rule'] for v in again['violations']]
    return None if rules == [rule] else f"{found['scenario']} alone reports {rules}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('sources')
    parser.add_argument('--every', type=int, default=1)
    parser.add_argument('--sanitize', action='store_true')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('only', nargs='*', metavar='fault')
    args = parser.parse_args()
    weft = os.path.join(args.build, 'weft')
    source = os.path.join(args.sources, 'faulty.c')
    names = list(enumerate(faults(source)))
    if args.only:
        names = [n for n in names if n[1] in args.only]
    elif args.every > 1:
        names = names[:1] + [n for i, n in enumerate(names[1:])
                             if i % args.every == 0 or n[1] in ALWAYS]
    if not args.sanitize:
        names = [n for n in names if n[1] not in SANITIZED_ALONE]
    failed = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        clients = {}
        for generation in ['E'] + sorted(set(OLDER.values())):
            clients[generation] = os.path.join(folder, f'faulty-{generation}.so')
            compile_client(weft, source, generation, clients[generation], args.sanitize)
        done = {name: pool.submit(judge, weft, clients[OLDER.get(name, 'E')], number, name)
                for number, name in names}
        for name, future in done.items():
            wrong = future.result()
            failed += wrong is not None
            if wrong:
                print(f'FAIL: {name}: {wrong}', flush=True)
    print(f'{len(names)} clients checked, {failed} not as they should be')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
