"""The service's rules: what the reports of a trial led to is stated in CONTROL, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.metrics.domain import State


def react(state: State, key: tuple[str, Any]) -> Sequence[Any]:
    """Decisions about a trial's reports that are not in the log yet."""
    kind, id = key
    # A trial that was deleted has moved, too.
    if kind != "trials" or id not in state.trials:
        return ()
    return [finding.validated or finding.refused for finding in state.trials[id].pending]
