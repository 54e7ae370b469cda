"""Measures how many small changes of the services' rules the unit tests, or some seeds, notice.

    python -m tests.simulation.mutation --sample 100         # a hundred mutants, always the same ones
    python -m tests.simulation.mutation --only searcher/verdict --sample 0       # all of one file

Prints each mutant that survives, and the share of those that are noticed.
"""

import argparse
import importlib.abc
import importlib.util
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.simulation.mutants import mutants

ROOT = Path(__file__).parents[2]
TESTS = {
    "searcher": ["tests/searcher", "--ignore", "tests/searcher/methods"],
    "scheduler": ["tests/scheduler", "--ignore", "tests/scheduler/policy"],
    "checkpoints": ["tests/checkpoints"],
    "metrics": [f"tests/metrics/test_{what}.py" for what in ("reports", "deletion", "naming")],
}
FILES = [
    *[f"searcher/{name}" for name in ("react", "verdict", "domain/fold")],
    *[f"scheduler/{name}" for name in ("react", "steps", "verdict")],
    *[f"scheduler/domain/{name}" for name in ("fold", "hosts", "queue")],
    *[f"checkpoints/{name}" for name in ("react", "domain/fold")],
    *[f"metrics/{name}" for name in ("react", "domain/fold")],
]
PROCESSOR_S = 240
"""Processor seconds that a mutant may take. By the clock, a busy machine would notice every mutant."""
IDLE_S, IDLE_PROCESSOR_S = 120.0, 1.0
"""A mutant that took less than that processor time for so long waits for something that never comes."""
SURVIVED, NOTICED, UNUSED = 10, 11, 12
"""Exit codes of the process that tries a mutant."""


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes imports of one module use other source code."""

    def __init__(self, file, source):
        self._name = f"services.{file.replace('/', '.')}"
        self._path = str(ROOT / "services" / f"{file}.py")
        self._source = source
        self.used = False

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def exec_module(self, module):
        self.used = True
        exec(compile(self._source, self._path, "exec"), module.__dict__)  # noqa: S102 - that is its work


def is_noticed(file, source, seeds):
    """Runs in a process of its own, which imports everything afresh and may never end."""
    command = [sys.executable, "-m", "tests.simulation.mutation", "--child", file, "--seeds", str(seeds)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as child:
        try:
            output = _output_of(child, source)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
    if output is None or child.returncode == -signal.SIGXCPU:
        return True
    if child.returncode not in (NOTICED, SURVIVED):
        raise RuntimeError(output.decode())
    return child.returncode == NOTICED


def _output_of(child, source):
    """What it prints until it ends; None if it stands still."""
    text, used = source.encode(), 0.0
    while True:
        try:
            return child.communicate(text, IDLE_S)[0]
        except subprocess.TimeoutExpired:
            before, used = used, sum(psutil.Process(child.pid).cpu_times()[:4])
            if used - before < IDLE_PROCESSOR_S:
                return None
            # It has got its input.
            text = None


def _try(file, source, seeds):
    """In that process: whether anything fails with this source."""
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S + 10))
    mutated = Mutated(file, source)
    sys.meta_path.insert(0, mutated)
    try:
        noticed = _fails(file.partition("/")[0], seeds)
    except BaseException:
        noticed = True
    if not mutated.used:
        return UNUSED
    return NOTICED if noticed else SURVIVED


def _fails(service, seeds):
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not live and not full"]
    if pytest.main([*options, *TESTS[service]]) != 0:
        return True
    from tests.simulation.simulate import simulate

    return any(simulate(seed).violation is not None for seed in range(seeds))


def chosen(only, sample, seed):
    """(file, mutant) of those to try."""
    files = [file for file in FILES if only in file]
    every = [(f, mutant) for f in files for mutant in mutants((ROOT / "services" / f"{f}.py").read_text())]
    if sample and sample < len(every):
        places = sorted(random.Random(seed).sample(range(len(every)), sample))
        every = [every[place] for place in places]
    return every


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=100, help="how many; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--seeds", type=int, default=20, help="simulated where unit tests notice nothing")
    parser.add_argument("--only", default="", help="part of a file's name")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return _try(args.child, sys.stdin.read(), args.seeds)
    tried = chosen(args.only, args.sample, args.seed)
    survivors = 0
    for file, mutant in tried:
        if not is_noticed(file, mutant.source(), args.seeds):
            survivors += 1
            print(f"services/{file}.py:{mutant.line}: {mutant.what}", flush=True)
    noticed = len(tried) - survivors
    print(f"{noticed} of {len(tried)} mutants are noticed: {100 * noticed / max(len(tried), 1):.0f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
