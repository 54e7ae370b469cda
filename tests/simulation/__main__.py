"""Simulates as many worlds as asked, on all cores; failing seeds are printed with their story."""

import argparse
import os
import sys
import time
import traceback
from collections import Counter, deque
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.activity import too_little
from tests.simulation.plan import KINDS
from tests.simulation.simulate import simulate

PORTION = 20


def some(first, count, off, steps):
    """Simulate `count` seeds; returns their total counts, and the stories of those that failed."""
    counts, stories, done = Counter(), {}, 0
    for seed in range(first, first + count):
        try:
            result = simulate(seed, off, steps)
        except Exception:
            # An error of the simulation itself: the other seeds go on, and the seed is named.
            stories[seed] = f"seed {seed}: {traceback.format_exc()}"
            continue
        counts.update(result.counts)
        done += result.steps
        if result.violation is not None:
            stories[seed] = minimal(seed, off, steps, result).story
    return counts, stories, done


def minimal(seed, off, steps, result):
    """Reproduce the same failure with as few kinds of trouble as possible."""
    name = str(result.violation).partition(":")[0]
    off = list(off)
    for kind in KINDS:
        if kind in off:
            continue
        tried = simulate(seed, [*off, kind], steps)
        if str(tried.violation).partition(":")[0] == name:
            off, result = [*off, kind], tried
    return result


def all_of(args, off):
    """Batches of seeds as they finish: (seeds, counts, stories, steps)."""
    ends = time.monotonic() + 60 * args.minutes
    first, last, waiting = args.first, args.first + args.seeds, deque()
    with ProcessPoolExecutor(args.jobs) as pool:
        while waiting or (first < last and time.monotonic() < ends):
            while first < last and len(waiting) < 2 * args.jobs and time.monotonic() < ends:
                count = min(PORTION, last - first)
                waiting.append((count, pool.submit(some, first, count, off, args.steps)))
                first += count
            count, portion = waiting.popleft()
            yield count, *portion.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300, help="events that the trouble lasts for, at least")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin nothing new after that")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--off", default="", help=f"kinds of trouble to leave out: {', '.join(KINDS)}")
    args = parser.parse_args()
    off = [kind for kind in args.off.split(",") if kind]
    began = time.monotonic()
    counts, failed, steps, seeds = Counter(), 0, 0, 0
    for count, portion_counts, stories, done in all_of(args, off):
        counts.update(portion_counts)
        seeds, steps, failed = seeds + count, steps + done, failed + len(stories)
        for story in stories.values():
            print(story, flush=True)
    spent = time.monotonic() - began
    print(f"{seeds} seeds, {steps} steps, {seeds / spent:.1f} seeds/s, {failed} failed")
    print(", ".join(f"{what} {count}" for what, count in sorted(counts.items())))
    lacking = too_little(counts, seeds) if seeds >= PORTION and not off else ""
    print(lacking or "there was enough activity")
    return 1 if failed or lacking else 0


if __name__ == "__main__":
    sys.exit(main())
