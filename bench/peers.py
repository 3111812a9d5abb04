# SPDX-License-Identifier: BSD-3-Clause
"""Peer memory: perftest with all its memory claimed by a client, and requests to owned memory."""

import contextlib

from sides import Weft, iterations, own_program


@contextlib.contextmanager
def setting(world, **settings):
    """What runs meanwhile has these in its environment."""
    before = dict(world.env)
    world.env.update(settings)
    try:
        yield
    finally:
        world.env.clear()
        world.env.update(before)


class Claimed(Weft):
    """A program of perftest while a client claims all memory, as direct or as owned."""

    def __init__(self, how, program):
        super().__init__(how, program)
        self.how = how

    def measure(self, world, size):
        client = f"{world.build}/tests/prog/libclaim_{self.how}.so"
        with setting(world, WEFT_PEER_CLIENTS=client):
            return super().measure(world, size)


class Cost:
    """bench/owned_cost: one request, in microseconds.  settings: of the environment."""

    needs = None
    is_weft = True

    def __init__(self, kind, what, name=None, settings=()):
        self.name = name or kind
        self.kind = kind
        self.what = what
        self.settings = dict(settings)

    def measure(self, world, size):
        # SAMPLES of them, each of milliseconds where agents copy
        count = iterations(size, most=20000) // 10
        with setting(world, **self.settings):
            return float(own_program(world, "owned_cost", self.kind, self.what, str(size),
                                     str(count)))


def owned(what):
    """The sides for one kind of request: the bars of owned memory."""
    return [Cost("owned", what),
            Cost("plain", what, "agent", {"WEFT_SHARE": "never", "WEFT_MOVER": "agent"}),
            Cost("plain", "memcpy", "memcpy"), Cost("both", what)]
