"""Decides which checkpoints of an experiment are kept (experiment configuration spec, section 2.4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint as retention sees it."""

    uuid: str
    trial_id: int
    steps: int
    stored: int
    """Order of storing. Breaks ties of equal steps: the later one wins."""
    metric: float | None = None
    """Searcher metric of the trial's validation at the same steps; None if there is none."""
    validated: int = 0
    """Order of that validation. Among equal metrics the older one wins."""


class Keep(msgspec.Struct, frozen=True):
    """The three retention numbers of a configuration."""

    experiment_best: int
    trial_best: int
    trial_latest: int


def kept_uuids(
    candidates: Collection[Candidate], keep: Keep, *, smaller_is_better: bool, protected: Collection[str] = ()
) -> set[str]:
    """Ids of the checkpoints that are kept. All others may be deleted."""
    ranked = sorted(
        (c for c in candidates if c.metric is not None),
        key=lambda c: (_comparable(c.metric, smaller_is_better), c.validated),
    )
    # The three rules are independent: a checkpoint stays if any of them keeps it.
    stay = {c.uuid for c in ranked[: keep.experiment_best]}
    stay |= _first_per_trial(ranked, keep.trial_best)
    latest = sorted(candidates, key=lambda c: (c.steps, c.stored), reverse=True)
    stay |= _first_per_trial(latest, keep.trial_latest)
    return stay | {c.uuid for c in candidates if c.uuid in protected}


def _comparable(metric: float | None, smaller_is_better: bool) -> float:
    value = 0.0 if metric is None else metric
    return value if smaller_is_better else -value


def _first_per_trial(ordered: Iterable[Candidate], count: int) -> set[str]:
    counts: dict[int, int] = {}
    stay = set()
    for candidate in ordered:
        counts[candidate.trial_id] = counts.get(candidate.trial_id, 0) + 1
        if counts[candidate.trial_id] <= count:
            stay.add(candidate.uuid)
    return stay
