"""Operations posted by a user's own search method: which of them count, and what they lead to."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts import ids
from det_contracts.custom_search import (
    CloseTrial,
    CreateTrial,
    CustomOperation,
    SetProgress,
    ShutDown,
    TrainTo,
)
from det_contracts.states import TERMINAL
from services.searcher.domain.state import State, Trial
from services.searcher.methods import Close, Create, Operation, Search, Shutdown, ValidateAfter
from services.searcher.methods.custom import TRIAL_SEED, CustomSearch

replace = msgspec.structs.replace


def apply_post(
    search: Search, operations: Iterable[CustomOperation], triggered_by: int
) -> tuple[Search, tuple[Operation, ...]]:
    """Return the search after a post, and the operations requested."""
    posted = tuple(operations)
    if not isinstance(search.method, CustomSearch):
        raise TypeError(f"a {type(search.method).__name__} does not accept posted operations")
    method = search.method.without_answered(triggered_by)
    for operation in posted:
        if isinstance(operation, SetProgress):
            method = replace(method, share=operation.progress)
    created = sum(isinstance(operation, CreateTrial) for operation in posted)
    method_operations = tuple(
        _operation(operation) for operation in posted if not isinstance(operation, SetProgress)
    )
    return replace(search, method=method, requested=search.requested + created), method_operations


def _operation(posted: CreateTrial | TrainTo | CloseTrial | ShutDown) -> Operation:
    match posted:
        case CreateTrial(request_id=id, hparams=hparams):
            # The seed that 0.25 gives to all of these trials.
            return Create(id, TRIAL_SEED, hparams)
        case TrainTo(request_id=id, length=length):
            return ValidateAfter(id, length)
        case CloseTrial(request_id=id):
            return Close(id)
        case ShutDown(cancel=cancel, failure=failure):
            return Shutdown(cancel, failure)


def find_trial(state: State, experiment_id: int, request_id: str) -> Trial | None:
    """The trial with the request id that a client uses for it."""
    named = state.tasks.get(ids.trial_task_id(experiment_id, request_id))
    return state.trials.get(named.id) if named is not None else None


def is_applicable(state: State, experiment_id: int, operation: CustomOperation) -> bool:
    """False for work on a trial that ended while the client was deciding."""
    if not isinstance(operation, TrainTo | CloseTrial):
        return True
    trial = find_trial(state, experiment_id, operation.request_id)
    return trial is None or trial.state not in TERMINAL
