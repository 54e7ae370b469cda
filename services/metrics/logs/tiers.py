"""Which chunks are merged, and when: many small commits become few large chunks.

A chunk's weight is its number of lines, or its bytes in units of 128 where that is more. Tier 0 weighs less
than 16, tier 1 less than 256, and so on; the last tier is full and never touched again. The newest chunks of
a task that are of tier t or below are merged as soon as the result is of a higher tier. So a task has at
most 15 chunks of each tier but the last, and a line is rewritten at most once per tier.
"""

from __future__ import annotations

from collections.abc import Sequence

STEPS = (16, 256, 4096, 16384)
"""Weights at which the next tier begins."""
FULL = len(STEPS)
UNIT_BYTES = 128


def weight_of(lines: int, size: int) -> int:
    """The weight of so many lines with so many bytes of text."""
    return max(lines, -(-size // UNIT_BYTES))


def tier_of(weight: int) -> int:
    """The tier of a chunk."""
    return sum(weight >= step for step in STEPS)


def merged(weights: Sequence[int]) -> int:
    """How many of a task's newest chunks (oldest first, none full) are to become one; 1: leave them."""
    most = 1
    for tier, step in enumerate(STEPS):
        count, total = 0, 0
        for weight in reversed(weights):
            if tier_of(weight) > tier:
                break
            count, total = count + 1, total + weight
        if total >= step:
            most = max(most, count)
    return most


def cuts(sizes: Sequence[int]) -> list[int]:
    """Where lines of so many bytes are cut into full chunks: the end of each; the rest is not full."""
    found, start, total = [], 0, 0
    for end, size in enumerate(sizes, 1):
        total += size
        if tier_of(weight_of(end - start, total)) == FULL:
            found.append(end)
            start, total = end, 0
    return found
