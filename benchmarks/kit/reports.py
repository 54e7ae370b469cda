"""Batches of reports, published as scripts publish them, without a process for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from nats.js import JetStreamContext

from det_contracts import subjects
from det_contracts.reports import ReportBatch, Series

FIRST_S = 1e9
"""Time of step 0, in seconds since 1970. A step takes one second."""


async def publish_round(
    stream: JetStreamContext,
    trials: Iterable[int],
    number: int,
    steps: Sequence[int],
    metrics: dict[str, list[float]],
) -> None:
    """Publish batch `number` of each trial, one value per step and metric. The broker may not have it yet."""
    series = Series("training", list(steps), [FIRST_S + step for step in steps], metrics)
    for trial in trials:
        batch = ReportBatch(
            trial_id=trial,
            experiment_id=1,
            run=1,
            number=number,
            searcher_metric="loss",
            smaller_is_better=True,
            series=[series],
        )
        await stream.publish_async(subjects.reports(trial), msgspec.json.encode(batch))
