"""Ranking of checkpoints (client spec, section 2)."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from determined.experimental._checkpoint import Checkpoint

logger = logging.getLogger("determined.client")


class Order(NamedTuple):
    """A validation metric and its direction."""

    metric: str
    smaller_is_better: bool


def of_searcher(config: dict[str, Any]) -> Order:
    """Return the searcher metric and its direction.

    Raises ValueError if the configuration names no metric.
    """
    searcher = config.get("searcher") or {}
    if not searcher.get("metric"):
        raise ValueError(
            "the experiment's configuration names no searcher metric: pass a metric name as sort_by"
        )
    return Order(searcher["metric"], bool(searcher.get("smaller_is_better", True)))


def best_first(checkpoints: Iterable[Checkpoint], order: Order) -> list[Checkpoint]:
    """Sort by the metric. Checkpoints without it come last. Ties keep their order.

    Warns if all are without it: with a misspelled name, an arbitrary one would be the best.
    """
    ranked = sorted(checkpoints, key=lambda checkpoint: _key(checkpoint, order))
    if ranked and not any(order.metric in _metrics(checkpoint) for checkpoint in ranked):
        names = sorted({name for checkpoint in ranked for name in _metrics(checkpoint)})
        logger.warning(
            "no checkpoint has a validation metric '%s', so none is known to be the best; they have %.1000s",
            order.metric,
            ", ".join(repr(name) for name in names) or "none",
        )
    return ranked


def best_of_each_trial(checkpoints: Iterable[Checkpoint], order: Order) -> list[Checkpoint]:
    """Return the best checkpoint of each trial, sorted by the metric."""
    best: dict[int | None, Checkpoint] = {}
    for checkpoint in best_first(checkpoints, order):
        best.setdefault(checkpoint.training.trial_id if checkpoint.training else None, checkpoint)
    return list(best.values())


def _key(checkpoint: Checkpoint, order: Order) -> tuple[bool, float]:
    value = _value(checkpoint, order.metric)
    if value is None:
        return True, 0.0
    return False, value if order.smaller_is_better else -value


def _metrics(checkpoint: Checkpoint) -> dict[str, Any]:
    training = checkpoint.training
    return (training.validation_metrics.get("avgMetrics") or {}) if training else {}


def _value(checkpoint: Checkpoint, metric: str) -> float | None:
    try:
        value = float(_metrics(checkpoint)[metric])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    # NaN compares with nothing: the order would depend on where it stands.
    return None if math.isnan(value) else value
