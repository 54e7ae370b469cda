"""Points of curves (REST spec, section 4)."""

from __future__ import annotations

from typing import Any

from services.catalogue.api_values import format_time
from services.gateway.determined.curves import Curve


def data(curve: Curve) -> list[dict[str, Any]]:
    """The points of a curve."""
    return [
        {"batches": batches, "values": values, "time": format_time(at), "epoch": epoch}
        for batches, at, epoch, values in curve.points
    ]
