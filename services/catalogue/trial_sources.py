"""Which trials judge a checkpoint or train it further, as they or their owners report it (decision 81)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from det_contracts.commands import ReportTrialSource
from det_contracts.events.gateway import TrialSourceReported
from det_contracts.problems import failed_precondition, invalid, not_found
from services.catalogue.domain import State
from services.catalogue.domain.state import source_key
from services.kit.rules import Call, Result

MAX_SOURCES = 100
"""Maximum number of checkpoints that one trial can name. The records stay in memory."""


def report_trial_source(state: State, command: ReportTrialSource, call: Call) -> Result:
    """Record that a trial uses a checkpoint. Repeating the same report has no effect."""
    if command.trial_id not in state.trials:
        raise not_found("trial", command.trial_id)
    if command.uuid not in state.checkpoints:
        raise not_found("checkpoint", command.uuid)
    if command.model_id is not None:
        _check_version(state, command)
    source = state.sources.get(source_key(command.trial_id, command.uuid))
    wanted = TrialSourceReported(
        trial_id=command.trial_id,
        checkpoint=command.uuid,
        kind=command.kind,
        model_id=command.model_id,
        version=command.version,
        reason=f"reported by {command.user}",
    )
    # Clients report again at every restart of a trial. The reporter is not compared: it would make an event
    # of each report by another.
    if source is not None and (source.kind, source.model_id, source.version) == (
        wanted.kind,
        wanted.model_id,
        wanted.version,
    ):
        return Result()
    # A report that corrects a known one adds no record, and is taken at the limit, too.
    if source is None and state.sources_of_trial.count(command.trial_id) >= MAX_SOURCES:
        message = f"trial {command.trial_id} uses {MAX_SOURCES} checkpoints, the most that a trial can name"
        raise failed_precondition(message)
    return Result([wanted])


def _check_version(state: State, command: ReportTrialSource) -> None:
    model = state.models.get(command.model_id or 0)
    if model is None:
        raise not_found("model", command.model_id)
    entry = state.versions_of.first(model.id, command.version or 0)
    if entry is None:
        raise not_found(f"version of model '{model.name}'", command.version)
    if state.versions[entry[-1]].checkpoint != command.uuid:
        raise invalid(
            f"version {command.version} of model '{model.name}' is checkpoint "
            f"{state.versions[entry[-1]].checkpoint}, not {command.uuid}"
        )


COMMANDS: dict[Any, Callable[[State, Any, Call], Result]] = {ReportTrialSource: report_trial_source}
