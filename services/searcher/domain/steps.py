"""What a step of the search method writes into the state.

The method runs inside the fold, so what it asks for follows from the log alone; `react` announces it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from det_contracts import ids
from det_contracts.states import State as Life
from services.searcher.domain.state import Named, State, Trial, is_stopping
from services.searcher.methods import (
    Close,
    Create,
    Event,
    MethodError,
    Operation,
    Shutdown,
    ValidateAfter,
    step,
)

Key = tuple[str, Any]
replace = msgspec.structs.replace


def apply_operations(state: State, experiment_id: int, operations: Iterable[Operation]) -> Iterable[Key]:
    """Write what the method asks for into the records; dropped once the experiment is stopping."""
    experiment = state.experiments[experiment_id]
    yield "experiments", experiment_id
    yield "searches", experiment_id
    # The method still takes its steps, so that its state follows from the log whatever the experiment does.
    if is_stopping(experiment.state):
        return
    for operation in operations:
        match operation:
            case Create():
                yield from open_trial(state, experiment_id, operation)
            case ValidateAfter(request_id=request_id, length=length):
                trial = trial_of_request(state, experiment_id, request_id)
                changed = replace(trial, seq=trial.seq + 1, length=length, complete=False)
                yield from state.put_trial(changed)
            case Close(request_id=request_id):
                trial = trial_of_request(state, experiment_id, request_id)
                yield from state.put_trial(replace(trial, closed=True))
            case Shutdown(cancel=cancel, failure=failure):
                to: Life = "STOPPING_CANCELED" if cancel else "STOPPING_COMPLETED"
                # A client's own method may set both; failure counts more.
                to = "STOPPING_ERROR" if failure else to
                # Looked up again: the steps before may have replaced the record.
                yield from state.put_experiment(replace(state.experiments[experiment_id], shutdown=to))


def open_trial(state: State, experiment_id: int, create: Create) -> Iterable[Key]:
    """Write a trial that is not announced yet, under the next id."""
    totals = state.totals["all"]
    id = totals.trials + 1
    state.totals["all"] = replace(totals, trials=id)
    task = ids.trial_task_id(experiment_id, create.request_id)
    state.tasks[task] = Named(id)
    # The parent's checkpoint of this moment: it trains on, and later ones are not what the child derives
    # from.
    source = trial_of_request(state, experiment_id, create.parent).checkpoint if create.parent else None
    yield "totals", "all"
    yield "tasks", task
    yield from state.insert_trial(
        Trial(
            id=id,
            experiment_id=experiment_id,
            request_id=create.request_id,
            task_id=task,
            seed=create.seed,
            hparams=create.hparams,
            source=source,
        ),
    )


def trial_of_request(state: State, experiment_id: int, request_id: str) -> Trial:
    """The trial that the method knows by this id."""
    return state.trials[state.tasks[ids.trial_task_id(experiment_id, request_id)].id]


def advance(state: State, experiment_id: int, event: Event) -> Iterable[Key]:
    """Take one step of the search method; an unmanaged experiment has none."""
    if experiment_id not in state.searches:
        yield "experiments", experiment_id
        return
    try:
        state.searches[experiment_id], operations = step(state.searches[experiment_id], event)
    except MethodError as error:
        yield from state.put_experiment(replace(state.experiments[experiment_id], fault=str(error)))
        operations = ()
    yield from apply_operations(state, experiment_id, operations)
