"""The service's rules: each decision about a trial's reports is recorded in CONTROL, once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from services.metrics.domain import State, shard_of_trial

AT_ONCE = 500
"""Maximum number of decisions about one trial that are recorded together; the next ones follow."""


def react(state: State, key: tuple[str, Any], *, shard: int = 1) -> Sequence[Any]:
    """Decisions about a trial's reports that are not in the log yet."""
    kind, id = key
    # Deleting a trial touches its record, too.
    if kind != "trials" or id not in state.trials:
        return ()
    # While the number of shards changed, a process may have read a trial that is another shard's now.
    if shard_of_trial(state, id) != shard:
        return ()
    return [finding.validated or finding.refused for finding in islice(state.pending_findings(id), AT_ONCE)]
