"""Tracks which keys were reported at which steps (REST spec, section 4, rule 3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from services.metrics.domain.state import Group, Kind
from services.metrics.domain.steps import add, contains, extend

KINDS = 32
"""Maximum number of name sets per group; beyond it, the oldest are forgotten."""
WORKING_KINDS = 4 * KINDS
"""Maximum number of name sets per group while a batch is judged."""
COMPARISONS = 500_000
"""Maximum number of stretches of steps that one batch is compared with; further reports count as new."""
REMEMBERED_BYTES = 16 * 1024 * 1024
"""Memory for the names and steps of all groups of a trial; beyond it, the oldest of a group are forgotten."""
RECENT = 16
"""Number of newest reports per group whose values are remembered, as digests."""

KindKey = tuple[tuple[str, ...], bool]
Entry = Literal["new", "merged", "same"]


class Conflict(Exception):
    """A report has a key that an earlier report at the same steps had."""


class Effort:
    """How much of what was reported before is still compared with a batch.

    A message holds hundreds of thousands of reports. Comparing each with all that is remembered of a group
    would take minutes, in which the service does nothing else.
    """

    def __init__(self, left: int = COMPARISONS) -> None:
        self._left = left

    def allows(self, kinds: Iterable[Kind]) -> bool:
        """Whether a report may still be compared with all of these."""
        self._left -= sum(len(kind.steps) for kind in kinds)
        return self._left >= 0


class Ledger:
    """The memory of one group while a batch is judged."""

    def __init__(self, group: Group, effort: Effort) -> None:
        self._group = group
        self._effort = effort
        self._highest = group.highest
        self._kinds = {(kind.names, kind.batched): kind for kind in group.kinds}
        self._recent = list(group.recent)

    def kind(self, names: tuple[str, ...], batched: bool) -> KindKey:
        """The key of reports with these names, for `enter`. It is valid until those of the next series."""
        key = names, batched
        if key not in self._kinds:
            self._kinds[key] = Kind(names, batched)
            if len(self._kinds) > WORKING_KINDS:
                # The oldest. A conflict with it is not found any more, which is the price of a limit.
                del self._kinds[next(iter(self._kinds))]
        return key

    def enter(self, kind: KindKey, steps: int, digest: int) -> Entry:
        """Record a report and classify it. "same": it exactly repeats a recent one.

        Raises `Conflict`, and then records nothing.
        """
        entry: Entry = "new"
        # Above the highest step nothing can have been reported before, which is nearly always so and costs
        # nothing.
        if steps <= self._highest:
            # The same report again is no conflict: a client that got no answer sends it once more.
            if (steps, digest) in self._recent:
                return "same"
            candidates = self._kinds.values() if self._effort.allows(self._kinds.values()) else ()
            earlier = [candidate for candidate in candidates if contains(candidate.steps, steps)]
            self._compare(self._kinds[kind], earlier)
            entry = "merged" if earlier else "new"
        self._remember(kind, steps, digest)
        return entry

    def extend(self, kind: KindKey, steps: list[int], digests: list[int]) -> None:
        """Record reports with growing steps beyond `highest`. `digests` are those of the newest reports."""
        previous = self._kinds[kind]
        self._kinds[kind] = Kind(previous.names, previous.batched, extend(previous.steps, steps))
        self._highest = steps[-1]
        self._recent.extend(zip(steps[-len(digests) :], digests, strict=True))

    @property
    def highest(self) -> int:
        """The highest step recorded so far."""
        return self._highest

    def _compare(self, kind: Kind, earlier: list[Kind]) -> None:
        used_names = {name for earlier_kind in earlier for name in earlier_kind.names}
        duplicate = next((name for name in kind.names if name in used_names), None)
        if duplicate is not None:
            raise Conflict(f"overwriting existing metric keys is not supported, conflicting key: {duplicate}")
        if kind.batched and any(earlier_kind.batched for earlier_kind in earlier):
            raise Conflict("overwriting existing batch metrics is not supported")

    def _remember(self, kind: KindKey, steps: int, digest: int) -> None:
        previous = self._kinds[kind]
        self._kinds[kind] = Kind(previous.names, previous.batched, add(previous.steps, steps))
        self._highest = max(self._highest, steps)
        self._recent.append((steps, digest))

    def close(self, room: int) -> Group:
        """What must be remembered from now on, in at most `room` bytes: the newest kinds that fit."""
        fitting_kinds: list[Kind] = []
        weight = 0
        for kind in reversed([kind for kind in self._kinds.values() if kind.steps][-KINDS:]):
            own = kind.weight
            if weight + own > room:
                break
            fitting_kinds.append(kind)
            weight += own
        return Group(
            run=self._group.run,
            highest=self._highest,
            kinds=tuple(reversed(fitting_kinds)),
            recent=tuple(self._recent[-RECENT:]),
            weight=weight,
        )
