"""Experiments (REST spec, section 3.2)."""

from __future__ import annotations

from typing import Any

from det_contracts import ids
from det_contracts.expconf import MASK, mask_secrets, replace_secrets
from services.catalogue.api_values import format_time
from services.catalogue.columns.column import columns_json
from services.catalogue.columns.experiments import COLUMNS
from services.catalogue.display_state import experiment_state
from services.catalogue.domain import Experiment, State, Submission
from services.people import users
from services.rest_routes.present.workspace import ProjectLocation, project_location


def experiment(
    record: Experiment,
    state: State,
    trial_ids: list[int],
    *,
    progress: float | None = None,
    waiting_reason: str = "",
    can_start: bool = True,
    lean: bool = False,
) -> dict[str, Any]:
    """An experiment with its trials. `waiting_reason` says why it is waiting for slots, if known;
    `can_start` is false if its pool can never hold one of its trials.

    `lean` omits the configuration, which is most of the answer and of the work.
    """
    submission = None if lean else state.submissions[record.id]
    user = users.by_any_name(state, record.user)
    extra_fields: ExtraFields = {
        "stateReason": waiting_reason
        if waiting_reason and experiment_state(record) == "QUEUED"
        else record.reason,
        "trialIds": trial_ids,
        "displayName": user.display_name if user else "",
        "userId": user.id if user else None,
        "jobId": ids.job_id(record.id),
        "progress": progress if record.ended_at is None else None,
        "config": {} if submission is None else mask_secrets(present_config(record, submission)),
        "originalConfig": "" if submission is None else masked_original_config(submission),
        "bestTrialId": record.best_trial,
        "unmanaged": record.unmanaged,
        "smallerIsBetter": record.smaller_is_better,
        "canStart": can_start,
        **project_location(state, record.project_id),
    }
    return {**columns_json(COLUMNS, state, record), **extra_fields}


class ExtraFields(ProjectLocation):
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
    canStart: bool


EMPTY_EXPERIMENT: dict[str, Any] = {
    "id": 0,
    "name": "",
    "description": "",
    "labels": [],
    "notes": "",
    "startTime": format_time(0.0),
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
    **project_location(State(), 1),
}
"""Used when an experiment is only validated; clients read these fields anyway."""


def present_config(record: Experiment, submission: Submission) -> dict[str, Any]:
    """The completed configuration, with later changes applied. What has not changed is not copied."""
    config = dict(submission.config)
    for field, value in record.changes.items():
        *above, last = field.split(".")
        if above:
            config[above[0]] = {**config[above[0]], last: value}
        else:
            config[last] = value
    return config


def masked_original_config(submission: Submission) -> str:
    """The submitted text, with keys and passwords masked."""
    text = submission.original_config
    secrets: list[str] = []
    replace_secrets(submission.config, lambda where, value: secrets.append(value))
    for secret in secrets:
        # Older texts hold secrets in clear text, as their configurations do.
        if isinstance(secret, str) and secret in text:
            text = text.replace(secret, MASK)
    return text
