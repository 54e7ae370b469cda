"""Queries that the metrics service answers from its folded state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from det_contracts.queries import ReportVerdict
from services.metrics.domain import State


def verdict(state: State, query: ReportVerdict) -> str:
    """Why the batch at a position was refused; "" if it was not."""
    trial = state.trials.get(query.trial_id)
    reasons = (
        [refusal.reason for refusal in trial.refusals if refusal.position == query.position] if trial else []
    )
    return "; ".join(reasons)


ANSWERS: dict[Any, Callable[[State, Any], Any]] = {ReportVerdict: verdict}
