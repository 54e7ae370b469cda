"""Tracks which keys were reported at which steps (REST spec, section 4, rule 3)."""

from __future__ import annotations

from typing import Literal

from services.metrics.domain.state import Group, Kind
from services.metrics.domain.steps import add, contains, extend

KINDS = 32
"""Maximum number of name sets per group; beyond it, the oldest are forgotten."""
RECENT = 16
"""Number of newest reports per group whose values are remembered, as digests."""

Entry = Literal["new", "merged", "same"]


class Conflict(Exception):
    """A report has a key that an earlier report at the same steps had."""


class Ledger:
    """The memory of one group while a batch is judged."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._highest = group.highest
        self._kinds = list(group.kinds)
        self._recent = list(group.recent)

    def kind(self, names: tuple[str, ...], batched: bool) -> int:
        """The index of reports with these names, for `enter`."""
        for number, kind in enumerate(self._kinds):
            if kind.batched == batched and kind.names == names:
                return number
        self._kinds.append(Kind(names, batched))
        return len(self._kinds) - 1

    def enter(self, kind: int, steps: int, digest: int) -> Entry:
        """Record a report and classify it. "same": it exactly repeats a recent one.

        Raises `Conflict`, and then records nothing.
        """
        entry: Entry = "new"
        if steps <= self._highest:
            if (steps, digest) in self._recent:
                return "same"
            earlier = [known for known in self._kinds if contains(known.steps, steps)]
            self._compare(self._kinds[kind], earlier)
            entry = "merged" if earlier else "new"
        self._remember(kind, steps, digest)
        return entry

    def extend(self, kind: int, steps: list[int], digests: list[int]) -> None:
        """Record reports with growing steps beyond `highest`. `digests` are those of the newest reports."""
        known = self._kinds[kind]
        self._kinds[kind] = Kind(known.names, known.batched, extend(known.steps, steps))
        self._highest = steps[-1]
        self._recent.extend(zip(steps[-len(digests) :], digests, strict=True))

    @property
    def highest(self) -> int:
        """The highest step recorded so far."""
        return self._highest

    def _compare(self, found: Kind, earlier: list[Kind]) -> None:
        used_names = {name for known in earlier for name in known.names}
        duplicate = next((name for name in found.names if name in used_names), None)
        if duplicate is not None:
            raise Conflict(f"overwriting existing metric keys is not supported, conflicting key: {duplicate}")
        if found.batched and any(known.batched for known in earlier):
            raise Conflict("overwriting existing batch metrics is not supported")

    def _remember(self, kind: int, steps: int, digest: int) -> None:
        known = self._kinds[kind]
        self._kinds[kind] = Kind(known.names, known.batched, add(known.steps, steps))
        self._highest = max(self._highest, steps)
        self._recent.append((steps, digest))

    def close(self) -> Group:
        """What must be remembered from now on."""
        kinds = [kind for kind in self._kinds if kind.steps]
        return Group(
            run=self._group.run,
            highest=self._highest,
            kinds=tuple(kinds[-KINDS:]),
            recent=tuple(self._recent[-RECENT:]),
        )
