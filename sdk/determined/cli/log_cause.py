"""The error in a failed trial's log, in one sentence, so that nobody has to search a long log for it."""

from __future__ import annotations

import os
from typing import Any

from determined.cli import output
from determined.common.api import errors
from determined.transport.rest import Session


def read_log_cause(session: Session, trial_id: int) -> str:
    """Return which error a trial's log names first, on which rank and where; empty if there is none."""
    try:
        cause: dict[str, Any] | None = session.get(f"/api/v1/trials/{trial_id}/logs/cause")["cause"]
    except errors.BadRequestException:
        # The explanation is an extra: its absence must not hide the state, which is already known.
        return ""
    return output.harmless(format_log_cause(trial_id, cause)) if cause else ""


def read_log_cause_of_experiment(session: Session, experiment_id: int) -> str:
    """Return the same for the first trial of an experiment that failed; empty if none did."""
    first = {"states": "STATE_ERROR", "sortBy": "SORT_BY_ID", "limit": 1}
    try:
        failed = session.get(f"/api/v1/experiments/{experiment_id}/trials", first)["trials"]
    except errors.BadRequestException:
        return ""
    return read_log_cause(session, int(failed[0]["id"])) if failed else ""


def format_log_cause(trial_id: int, cause: dict[str, Any]) -> str:
    """Format `The log of trial 7 says (rank 1, train.py:12): ValueError: no such layer`."""
    where = [] if cause["rankId"] is None else [f"rank {cause['rankId']}"]
    if place := cause["place"]:
        where.append(f"{os.path.basename(place['file'])}:{place['line']}")
    origin = f" ({', '.join(where)})" if where else ""
    return f"The log of trial {trial_id} says{origin}: {cause['said']['log'].strip()}"
