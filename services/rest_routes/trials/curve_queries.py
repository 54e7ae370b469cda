"""Reads curves of any number of trials from the metrics service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import chain, islice
from typing import Any

import msgspec

from det_contracts import queries
from det_contracts.problems import invalid
from services.catalogue.domain import Experiment, State, Trial
from services.catalogue.peers import Peers
from services.web.query import Integer, QueryModel

DEFAULT_POINTS = 1000
"""Default number of points of a curve."""
MAX_POINTS = 10_000
"""Maximum number of points of a curve, and of one answer of the metrics service."""


MAX_VALUES = 1_000_000
"""Maximum number of values in one answer of the gateway, which holds them all, some hundred bytes each."""


class Curve(msgspec.Struct, frozen=True):
    """One trial's reports of some metrics in one group."""

    trial_id: int
    group: str
    points: list[tuple[int, float, float | None, dict[str, Any]]]
    """(steps, time, epoch, values by name), ordered by steps."""


class CurveSelection(msgspec.Struct, frozen=True):
    """The requested part of the curves, and its resolution."""

    names: list[str]
    group: str | None
    first: int = 0
    last: int | None = None
    limit: int = DEFAULT_POINTS
    nearest: int | None = None
    """Return only the point nearest to this batch."""


class WindowQuery(QueryModel):
    """Query parameters that select a part of curves."""

    start_batches: Integer = 0
    end_batches: Integer = 0
    max_datapoints: Integer = 0

    def window(self) -> tuple[int, int | None, int]:
        """First batch, last batch and maximum points per curve. Raises `Refused` (400) for a bad range."""
        first, last, limit = self.start_batches, self.end_batches, self.max_datapoints
        if first < 0 or last < 0 or (last and last < first):
            raise invalid(f"start_batches and end_batches must be a range, not {first} to {last}")
        if limit < 0:
            raise invalid(f"max_datapoints must not be {limit}; 0 means {DEFAULT_POINTS}")
        return first, last or None, min(limit or DEFAULT_POINTS, MAX_POINTS)


async def fetch_curves(peers: Peers, trial_ids: list[int], selection: CurveSelection) -> list[Curve]:
    """Curves by trial and group.

    Raises `Refused` while the metrics service is unavailable, and for more than `MAX_VALUES`.
    """
    curves: list[Curve] = []
    values = 0
    points = selection.limit if selection.nearest is None else 1
    for some in split_ids(trial_ids, max(1, MAX_POINTS // (points * max(1, len(selection.names))))):
        query = queries.Series(
            trial_ids=some,
            names=selection.names,
            group=selection.group,
            first=selection.first,
            last=selection.last,
            limit=selection.limit,
            nearest=selection.nearest,
        )
        fresh = msgspec.convert(await peers.query(query), list[Curve])
        values += sum(len(curve.points) for curve in fresh) * len(selection.names)
        if values > MAX_VALUES:
            raise invalid(
                f"these curves have more than {MAX_VALUES:,} values: ask for fewer trials or metrics, or for "
                "fewer points with maxDatapoints"
            )
        curves += fresh
    return curves


def split_ids(ids: list[int], size: int) -> Iterator[list[int]]:
    """Split ids into parts of at most `size`, so that each part's answer fits into one message."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


async def reported_batches(
    peers: Peers, experiment_id: int, group: str, metric: str
) -> AsyncIterator[list[int]]:
    """All batches at which any trial of an experiment reported a metric, page by page."""
    after, more = -1, True
    while more:
        query = queries.ReportedSteps(experiment_id=experiment_id, group=group, metric=metric, after=after)
        answer = await peers.query(query)
        yield answer["steps"]
        after, more = max(answer["steps"], default=after), answer["more"]


def best_trials(state: State, experiment: Experiment, most: int) -> list[Trial]:
    """Up to `most` trials by searcher metric, best first, followed by those without one, oldest first."""
    ranked = (state.trials[id] for id in state.ranked_trials.ids(experiment.id))
    others = (state.trials[id] for id in state.trials_of.ids(experiment.id))
    return list(islice(chain(ranked, (trial for trial in others if trial.best is None)), most))
