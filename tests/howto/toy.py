#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The toy of a page of docs/howto/: patched into the tree, built, run.

usage: toy.py SOURCE BUILD PAGE

tests/howto/PAGE.patch is applied to copies of the files that it names, in a folder that stands
before the tree in the search path of #include.  What depends on those files is built again, by the
commands that ninja would give, and the page's targets are linked with it; nothing in BUILD changes.
tests/howto/PAGE.c uses the result.  Which files the page names is held by tools/check-howto.
"""
import multiprocessing.pool
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

# What is linked anew; what the program is linked with, besides the objects that it uses by itself.
PAGES = {
    'new-opcode': {'targets': ['lib/libibverbs.so.1', 'weftd'],
                   'program': ['tests/lib/libtestlib.a', 'lib/libibverbs.so.1'], 'objects': []},
    'mad-agent': {'targets': ['weftd'],
                  'program': ['tests/lib/libtestlib.a', 'mad/libmad.a', 'wire/libwire.a',
                              'base/libbase.a', '-ljansson'],
                  'objects': ['daemon/mad_service.c', 'daemon/mad_echo.c']},
}


class Failed(Exception):
    """A command did.  (A pool waits for ever for a thread of its own that exits.)"""


def run(argv, **how):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    if done.returncode:
        raise Failed(f'{" ".join(map(str, argv))}\n{done.stdout}')
    return done.stdout


class Toy:
    """SOURCE and BUILD with one patch, in a folder of its own."""

    def __init__(self, source, build, page, folder):
        self.source, self.build, self.page = source, build, page
        self.tree, self.out = folder / 'tree', folder / 'out'
        self.steps = {}  # by output: ninja's command
        self.built = {}  # by output of ninja's: ours

    def patch(self):
        """Applies it; the files that are new."""
        text = (self.source / f'tests/howto/{self.page}.patch').read_text()
        new = set()
        for line in text.splitlines():
            if line.startswith('--- '):
                old = line[4:]
            elif line.startswith('+++ b/'):
                at = self.tree / line[6:]
                at.parent.mkdir(parents=True, exist_ok=True)
                if old == '/dev/null':
                    new.add(line[6:])
                else:
                    at.write_bytes((self.source / line[6:]).read_bytes())
        run(['patch', '-s', '-p1', '-F0', '-d', self.tree], input=text)
        return new

    def read_steps(self, targets):
        for line in run(['ninja', '-C', self.build, '-t', 'commands', *targets]).splitlines():
            argv = shlex.split(line)
            if '-o' in argv:
                self.steps[argv[argv.index('-o') + 1]] = argv
            elif 'csrDT' in argv:
                argv = ['csrD' if word == 'csrDT' else word for word in argv]  # not thin
                self.steps[argv[argv.index('csrD') + 1]] = argv[argv.index('&&') + 1:]

    def depending(self):
        """The objects that were made of a file which the patch changes."""
        files = {os.path.normpath(self.source / f.relative_to(self.tree))
                 for f in self.tree.rglob('*') if f.is_file()}
        objects, now = set(), None
        for line in run(['ninja', '-C', self.build, '-t', 'deps']).splitlines():
            if not line.startswith(' '):
                now = line.partition(':')[0]
            elif line and os.path.normpath(self.build / line.strip()) in files:
                objects.add(now)
        return objects & set(self.steps)

    def own_place(self, name):
        at = self.out / name
        at.parent.mkdir(parents=True, exist_ok=True)
        self.built[name] = str(at)
        return str(at)

    def compile(self, name, argv, source):
        """As argv does, but that source, the patched one if there is one."""
        argv = list(argv)
        at = self.tree / source
        argv[argv.index('-c') + 1] = str(at if at.exists() else self.source / source)
        argv[argv.index('-o') + 1] = self.own_place(name)
        if '-MF' in argv:
            argv[argv.index('-MF') + 1] = self.built[name] + '.d'
        first = next(i for i, word in enumerate(argv) if word.startswith('-I'))
        argv.insert(first, f'-I{self.tree}')
        run([*argv, '-O0', '-g0'], cwd=self.build)  # quick to build

    def source_of(self, argv):
        path = os.path.normpath(self.build / argv[argv.index('-c') + 1])
        return os.path.relpath(path, self.source)

    def plan(self, new):
        """What is to be compiled: (object, a command to go by, source)."""
        jobs = [(o, self.steps[o], self.source_of(self.steps[o])) for o in self.depending()]
        kin = {}
        for name, argv in self.steps.items():
            if '-c' in argv:
                kin[os.path.dirname(self.source_of(argv)), os.path.dirname(name)] = argv
        for source in sorted(f for f in new if f.endswith('.c')):
            for (folder, place), argv in kin.items():
                if folder == os.path.dirname(source):
                    jobs.append((f'{place}/toy_{os.path.basename(source)}.o', argv, source))
        return jobs

    def link(self, name, added):
        """An archive or target, of the objects that were built anew, and those that are new."""
        argv = [self.built.get(word, word) for word in self.steps[name]]
        argv[argv.index(name)] = self.own_place(name)
        place = name + '.p/'
        argv += [self.built[o] for o in added if o.startswith(place)]
        run(argv, cwd=self.build)

    def make(self, targets):
        new = self.patch()
        self.read_steps(targets)
        jobs = self.plan(new)
        if not jobs:
            sys.exit('nothing depends on what the patch changes')
        with multiprocessing.pool.ThreadPool(os.cpu_count()) as pool:
            pool.starmap(self.compile, jobs)
        added = [name for name, _, source in jobs if source in new]
        touched = {os.path.dirname(name)[:-len('.p')] for name, _, _ in jobs}
        archives = [a for a in touched if a.endswith('.a')]
        for name in archives + targets:
            self.link(name, added)
        return {source: self.built[name] for name, _, source in jobs}

    def program(self, objects, libraries):
        at = str(self.out / 'toy')
        source = str(self.source / f'tests/howto/{self.page}.c')
        argv = next(argv for argv in self.steps.values() if '-c' in argv)
        self.steps['toy.o'] = argv
        self.compile('toy.o', argv, os.path.relpath(source, self.source))
        run([*argv[:2 if 'ccache' in argv[0] else 1], '-o', at, self.built['toy.o'],
             *objects, *[word if word.startswith('-') else self.built.get(word, word)
                         for word in libraries], '-pthread'], cwd=self.build)
        return at


def main():
    source, build = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    page = PAGES[sys.argv[3]]
    with tempfile.TemporaryDirectory() as folder:
        toy = Toy(source, build, sys.argv[3], pathlib.Path(folder))
        objects = toy.make(page['targets'])
        program = toy.program([objects[o] for o in page['objects']], page['program'])
        runtime = pathlib.Path(folder) / 'runtime'
        runtime.mkdir(mode=0o700)
        env = dict(os.environ, WEFT_RUNTIME_DIR=str(runtime), WEFT_DAEMON=str(toy.out / 'weftd'),
                   LD_LIBRARY_PATH=f'{toy.out}/lib:{build}/lib')
        try:
            result = subprocess.run([program], env=env, timeout=60, check=False).returncode
        finally:
            subprocess.run([build / 'weft', 'down'], env=env, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sys.exit(result)


if __name__ == '__main__':
    try:
        main()
    except Failed as e:
        sys.exit(str(e))
