"""Metric values in transport form: any JSON, with NaN and infinities as text."""

from __future__ import annotations

import math
from typing import Any

NON_FINITE_VALUES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def as_number(value: Any) -> float | None:
    """The value as a number, including NaN and infinities given as text. None for anything else."""
    if isinstance(value, str):
        return NON_FINITE_VALUES.get(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def as_finite(value: Any) -> float | None:
    """The value as a finite number; None for anything else."""
    number = as_number(value)
    return number if number is not None and math.isfinite(number) else None
