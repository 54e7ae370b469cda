"""Compact sets of integers that mostly grow in even strides.

A million steps reported every hundredth batch are one stretch. Irregular numbers cost one stretch per one or
two numbers. Beyond a limit the oldest stretches are forgotten, so a set may answer "no" where it used to
answer "yes".
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MAX_STRETCHES = 1000
"""Maximum number of stretches in a set."""
OPEN_STRETCHES = 4
"""Number of newest stretches that a number may continue."""


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """`first`, `first + stride`, ...: `count` numbers. The stride may be negative but not 0."""

    first: int
    stride: int = 1
    count: int = 1

    @property
    def next(self) -> int:
        """The number that would continue it."""
        return self.first + self.stride * self.count


Steps = tuple[Stretch, ...]


def contains(steps: Steps, number: int) -> bool:
    """Whether the number is in the set."""
    for stretch in reversed(steps):
        index, rest = divmod(number - stretch.first, stretch.stride)
        if rest == 0 and 0 <= index < stretch.count:
            return True
    return False


def extend(steps: Steps, numbers: Sequence[int]) -> Steps:
    """Add growing numbers that are not in the set. The result is that of repeated `add`, or shorter."""
    stride = numbers[1] - numbers[0] if len(numbers) > 1 else 0
    if stride and numbers == list(range(numbers[0], numbers[-1] + 1, stride)):
        if (
            steps
            and (steps[-1].count == 1 or steps[-1].stride == stride)
            and _leads_to(steps[-1], numbers[0], stride)
        ):
            last = steps[-1]
            return (*steps[:-1], Stretch(last.first, stride, last.count + len(numbers)))
        return (*_make_room(steps), Stretch(numbers[0], stride, len(numbers)))
    for number in numbers:
        steps = add(steps, number)
    return steps


def _leads_to(stretch: Stretch, number: int, stride: int) -> bool:
    return number == stretch.first + stride * stretch.count


def _make_room(steps: Steps) -> Steps:
    # Half at once, so that a set at its limit is not copied for each number.
    return steps if len(steps) < MAX_STRETCHES else steps[MAX_STRETCHES // 2 :]


def add(steps: Steps, number: int) -> Steps:
    """The set with a number that is not in it yet."""
    # Several may grow at once, as when a script reports in turns at two rhythms.
    for index in range(len(steps) - 1, max(len(steps) - OPEN_STRETCHES, 0) - 1, -1):
        stretch = steps[index]
        if stretch.next == number:
            longer = Stretch(stretch.first, stretch.stride, stretch.count + 1)
            return (*steps[:index], longer, *steps[index + 1 :])
    if steps and steps[-1].count == 1:
        first = steps[-1].first
        return (*steps[:-1], Stretch(first, number - first, 2))
    return (*_make_room(steps), Stretch(number))
