"""How benchmarks print: one row per measure, with its aim and the ratio to a limit of this machine."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def row(measure: str, value: float, unit: str, aim: str = "", ratio: str = "") -> None:
    """Print one row of the table."""
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    print(f"| {measure} | {shown} {unit} | {aim} | {ratio} |", flush=True)


def head() -> None:
    """Print the head of the table."""
    print("| measure | value | aim | ratio |\n|---|---|---|---|", flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)
