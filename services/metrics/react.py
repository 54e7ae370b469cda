"""The service's rules: what the reports of a trial led to is stated in CONTROL, once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from services.metrics.domain import State

AT_ONCE = 500
"""Decisions about one trial that are stated together; the next follow these."""


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Decisions about a trial's reports that are not in the log yet."""
    kind, id = key
    # A trial that was deleted has moved, too.
    if kind != "trials" or id not in state.trials:
        return ()
    return [finding.validated or finding.refused for finding in islice(state.pending(id), AT_ONCE)]
