"""Points of curves (REST spec, section 4)."""

from __future__ import annotations

from typing import Any

from services.catalogue.api_values import format_time
from services.rest_routes.trials.curve_queries import Curve

TYPES = {"training": "METRIC_TYPE_TRAINING", "validation": "METRIC_TYPE_VALIDATION"}


def metrics(curve: Curve) -> dict[str, Any]:
    """A curve with its group. Clients of 0.25 also read the type, which names only two groups."""
    kind = TYPES.get(curve.group, "METRIC_TYPE_UNSPECIFIED")
    return {"group": curve.group, "type": kind, "data": data(curve)}


def data(curve: Curve) -> list[dict[str, Any]]:
    """The points of a curve."""
    return [
        {"batches": batches, "values": values, "time": format_time(at), "epoch": epoch}
        for batches, at, epoch, values in curve.points
    ]
