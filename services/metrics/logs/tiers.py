"""Decides when which chunks are merged: many small commits become few large chunks.

A chunk's weight is its number of lines, or its size in units of 128 bytes if that is larger. Tier 0 is below
weight 16, tier 1 below 256, and so on; chunks of the last tier are full and never touched again. A new chunk
absorbs the preceding chunks of a lower tier, and those of its own tier once the result is of a higher tier.
So tiers fall from the oldest chunk to the newest, a task has at most 15 chunks of each tier except the last,
and a line is rewritten about once per tier.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

STEPS = (16, 256, 4096, 16384)
"""Weights at which the next tier begins."""
FULL = len(STEPS)
UNIT_BYTES = 128


def weight_of(lines: int, size: int) -> int:
    """The weight of a number of lines with this many bytes of text."""
    return max(lines, -(-size // UNIT_BYTES))


def tier_of(weight: int) -> int:
    """The tier of a chunk."""
    return sum(weight >= step for step in STEPS)


def merge_count(weights: Sequence[int]) -> int:
    """How many of a task's newest chunks are to be merged.

    `weights` are oldest first; none is full, except perhaps the last.
    """
    count, total = 1, weights[-1]
    older = list(weights[:-1])
    while older:
        tier = tier_of(total)
        if tier_of(older[-1]) < tier:
            run = 1
        else:
            run = _run_length(older, tier)
            if not run or total + sum(older[-run:]) < STEPS[tier]:
                break
        total += sum(older[-run:])
        count += run
        del older[-run:]
    return count


def _run_length(weights: Sequence[int], tier: int) -> int:
    """How many of the newest chunks are of this tier or below."""
    return next((n for n, weight in enumerate(reversed(weights)) if tier_of(weight) > tier), len(weights))


def full_chunk_ends(sizes: Sequence[int]) -> list[int]:
    """The ends of the full chunks into which lines of these sizes are split. The rest is not full."""
    lines, size = STEPS[-1], (STEPS[-1] - 1) * UNIT_BYTES
    totals = [0, *accumulate(sizes)]
    ends, start = list[int](), 0
    while True:
        # The first end at which the chunk is heavy enough, by lines or by bytes.
        end = min(start + lines, bisect_right(totals, totals[start] + size))
        if end >= len(totals):
            return ends
        ends.append(end)
        start = end
