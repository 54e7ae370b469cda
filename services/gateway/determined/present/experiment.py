"""Experiments (REST spec, section 3.2)."""

from __future__ import annotations

import copy
from typing import Any

from det_contracts import ids
from det_contracts.expconf import MASK, masked, with_secrets
from services.catalogue.api_values import instant
from services.catalogue.columns.column import shown
from services.catalogue.columns.experiments import COLUMNS
from services.catalogue.display_state import experiment_state
from services.catalogue.domain import Experiment, State, Submission
from services.gateway.determined.present.workspace import Place, place
from services.people import users


def experiment(
    one: Experiment,
    state: State,
    trial_ids: list[int],
    *,
    progress: float | None = None,
    waits: str = "",
    lean: bool = False,
) -> dict[str, Any]:
    """An experiment with its trials. `waits` says why it is waiting for slots, if known.

    `lean` omits the configuration, which is most of the answer and of the work.
    """
    submission = None if lean else state.submissions[one.id]
    user = users.named(state, one.user)
    beside: Beside = {
        "stateReason": waits if waits and experiment_state(one) == "QUEUED" else one.reason,
        "trialIds": trial_ids,
        "displayName": user.display_name if user else "",
        "userId": user.id if user else None,
        "jobId": ids.job_id(one.id),
        "progress": progress if one.ended_at is None else None,
        "config": {} if submission is None else masked(present_config(one, submission)),
        "originalConfig": "" if submission is None else without_secrets(submission),
        "bestTrialId": one.best_trial,
        "unmanaged": one.unmanaged,
        "smallerIsBetter": one.smaller_is_better,
        **place(state, one.project_id),
    }
    return {**shown(COLUMNS, state, one), **beside}


class Beside(Place):
    """The fields of an experiment that are not columns."""

    stateReason: str
    trialIds: list[int]
    displayName: str
    userId: int | None
    jobId: str
    progress: float | None
    config: dict[str, Any]
    originalConfig: str
    bestTrialId: int | None
    unmanaged: bool
    smallerIsBetter: bool


EMPTY: dict[str, Any] = {
    "id": 0,
    "name": "",
    "description": "",
    "labels": [],
    "notes": "",
    "startTime": instant(0.0),
    "endTime": None,
    "state": "STATE_UNSPECIFIED",
    "archived": False,
    "numTrials": 0,
    "trialIds": [],
    "username": "",
    "resourcePool": "",
    "searcherType": "",
    "jobId": "",
    "config": {},
    "originalConfig": "",
    **place(State(), 1),
}
"""Used when an experiment is only validated; clients read these fields anyway."""


def present_config(one: Experiment, submission: Submission) -> dict[str, Any]:
    """The completed configuration, with later changes applied."""
    config = copy.deepcopy(submission.config)
    for field, value in one.changes.items():
        *above, last = field.split(".")
        (config[above[0]] if above else config)[last] = value
    return config


def without_secrets(submission: Submission) -> str:
    """The submitted text, with keys and passwords masked."""
    text = submission.original_config
    found: list[str] = []
    with_secrets(submission.config, lambda where, value: found.append(value))
    for secret in found:
        # Older texts hold secrets in clear text, as their configurations do.
        if isinstance(secret, str) and secret in text:
            text = text.replace(secret, MASK)
    return text
