#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run makes of its chunks: by where the CPUs were, and percentiles, not medians of all.

usage: bench_results_test.py BENCH
"""
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import results  # noqa: E402

NEAR, FAR = [100.0, 110.0], [450.0, 400.0]
failures = 0


def same(what, wanted, got):
    global failures
    if wanted != got:
        failures += 1
        print(f'{what}:\n  {got!r}, not\n  {wanted!r}')


def chunk(value, spins):
    return {'value': value, 'spin_ns': spins}


def result(unit, ours, before):
    return {'name': 'lat', 'what': 'Of nothing', 'unit': unit, 'rounds': len(ours), 'sizes': [8],
            'sides': ['weft', 'weft before'], 'weft': 'weft', 'far_ns': 180,
            'chunks': {'8': {'weft': ours, 'weft before': before}}}


# In the last near round a process lost its CPU, and in another one the CPUs moved.
ours = ([chunk(v, NEAR) for v in (1.0, 1.1, 1.2, 1.3, 9.0)] + [chunk(3.0, FAR), chunk(4.0, FAR)] +
        [chunk(50.0, [100.0, 450.0]), chunk(None, NEAR)])
before = [chunk(2 * c['value'] if c['value'] else 1.0, c['spin_ns']) for c in ours]
lat = result('us', ours, before)

same('values near', [1.0, 1.1, 1.2, 1.3, 9.0] + [None] * 4, results.values_at(lat, 8, 'weft', 'near'))
same('a moved chunk', None, results.place_of(lat, ours[7]))
same('percentile', 1.1, results.percentile([9.0, 1.0, 1.3, 1.1, 1.2], 25))
same('percentile of one', 3.0, results.percentile([3.0], 90))
same('of latencies', {'good': 1.1, 'best': 1.04, 'median': 1.2},
     results.summary(lat, results.values_at(lat, 8, 'weft', 'near')))
same('rows', ['| 8 B, near | 1.10 (1.04, 1.20) | 2.05 (1.50, 2.30) | 0.54 (0.50-0.50) |',
              '| 8 B, far | 3.25 (3.10, 3.50) | 6.50 (6.20, 7.00) | 0.50 (0.50-0.50) |'],
     results.table(lat).split('\n')[-2:])
same('spins', '12 chunks near (spin round trip 105 (100-110) ns), 4 chunks far (spin round trip 425 '
     '(400-450) ns), 2 left out: the CPUs moved meanwhile', results.spins(lat))
same('verdict', 'against: lat, weft, 8 B, near: 0.54 (0.50-0.50)\n'
     'against: lat, weft, 8 B, far: 0.50 (0.50-0.50)', results.verdict(lat))

rate = result('GB/s', [chunk(v, NEAR) for v in (4.0, 8.0, 1.0)], [chunk(4.0, NEAR)] * 3)
same('of rates', {'good': 6.0, 'best': 7.2, 'median': 4.0},
     results.summary(rate, results.values_at(rate, 8, 'weft', 'near')))
same('rates as a factor of time', 'against: lat, weft, 8 B, near: 0.67 (0.75-2.50)', results.verdict(rate))
gone = result('us', [chunk(None, NEAR)], [chunk(2.0, NEAR)])
same('a side that failed', '| 8 B, near | - | 2.00 (2.00, 2.00) | - |', results.table(gone).split('\n')[-1])

sys.exit(failures > 0)
