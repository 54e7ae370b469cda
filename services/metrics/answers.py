"""Queries that the metrics service answers from its folded state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from det_contracts.queries import ReportVerdict
from services.metrics.domain import State


def verdict(state: State, query: ReportVerdict) -> str:
    """Why the batch at a position was refused; "" if it was not."""
    known = state.trials.get(query.trial_id)
    found = [one.reason for one in known.refusals if one.position == query.position] if known else []
    return "; ".join(found)


ANSWERS: dict[Any, Callable[[State, Any], Any]] = {ReportVerdict: verdict}
