"""Posts from a user's own search method, each accepted or refused as a whole (searchers spec, section 8)."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import msgspec

from det_contracts import ids
from det_contracts.commands import PostOperations
from det_contracts.custom_search import (
    CloseTrial,
    CreateTrial,
    CustomOperation,
    SetProgress,
    ShutDown,
    TrainTo,
)
from det_contracts.events import searcher
from det_contracts.problems import Problem, Refused, failed_precondition, invalid, not_found
from det_contracts.queries import SearcherEvents
from det_contracts.states import OVER, STOPPING
from services.kit.rules import Call, Result
from services.searcher.domain import Experiment, State
from services.searcher.domain.custom import find_trial, is_applicable
from services.searcher.methods.custom import CustomSearch, Queued

MAX_EVENTS = 2000
MAX_ANSWER_BYTES = 2 * 1024 * 1024
"""Maximum size of one answer, so that it fits into one message.

Answering these events reveals the next ones.
"""
_SHUT_DOWN = frozenset({"STOPPING_COMPLETED", "COMPLETED"})


def post_operations(state: State, command: PostOperations, call: Call) -> Result:
    """Accept the operations posted for an event. They answer this event and all earlier ones."""
    experiment, method = _find_custom_search(state, command.experiment_id)
    if experiment.state in _SHUT_DOWN:
        # The method has done this itself, and its client still answers events that it received before. If it
        # were refused, it would end with an error although the search was completed.
        return Result()
    if experiment.state in OVER or experiment.state in STOPPING:
        raise failed_precondition(f"experiment in incompatible state {experiment.state}")
    if command.triggered_by not in method.queue:
        raise Refused(Problem("not_found", f"event {command.triggered_by} not found"))
    checked = _OperationChecker(state, command.experiment_id)
    for operation in command.operations:
        checked.check(operation)
    # Work for a trial that has just ended is dropped, and not refused: the client could not know, and would
    # lose the whole post.
    applicable_operations = tuple(
        operation
        for operation in command.operations
        if is_applicable(state, command.experiment_id, operation)
    )
    return Result(
        [
            searcher.OperationsPosted(
                experiment_id=command.experiment_id,
                triggered_by=command.triggered_by,
                operations=applicable_operations,
                reason=f"posted by {command.user} for event {command.triggered_by}",
            )
        ]
    )


def searcher_events(state: State, query: SearcherEvents) -> dict[str, Any]:
    """The state of the experiment and the oldest unanswered events."""
    experiment, method = _find_custom_search(state, query.experiment_id)
    events: list[Queued] = []
    bytes_left = MAX_ANSWER_BYTES
    for event in islice(method.queue, MAX_EVENTS):
        bytes_left -= len(msgspec.json.encode(event))
        # At least one, however large: the client could not answer it otherwise, and the queue would never
        # move.
        if events and bytes_left < 0:
            break
        events.append(event)
    return {"state": experiment.state, "events": msgspec.to_builtins(events)}


def _find_custom_search(state: State, experiment_id: int) -> tuple[Experiment, CustomSearch]:
    experiment = state.experiments.get(experiment_id)
    if experiment is None:
        raise not_found("experiment", experiment_id)
    search = state.searches.get(experiment_id)
    if search is None or not isinstance(search.method, CustomSearch):
        raise invalid(f"the searcher of experiment {experiment_id} is not 'custom', or runs elsewhere")
    return experiment, search.method


class _OperationChecker:
    """Checks operations in order, each as if the previous ones had been executed."""

    def __init__(self, state: State, experiment_id: int) -> None:
        self._state = state
        self._experiment_id = experiment_id
        self._created: set[str] = set()
        self._closed: set[str] = set()
        self._busy: set[str] = set()
        self._is_shut_down = False

    def check(self, operation: CustomOperation) -> None:
        """Raise `Refused` for an operation that cannot be executed."""
        if self._is_shut_down and not isinstance(operation, SetProgress):
            raise invalid("shut_down must be the last operation of a post, but for set_searcher_progress")
        match operation:
            case ShutDown():
                self._is_shut_down = True
            case CreateTrial(request_id=id):
                self._create(id)
            case TrainTo(request_id=id, length=length):
                self._require_open(id)
                if length < 1:
                    raise invalid(f"trial {id}: length must be at least 1, not {length}")
                # A trial has one operation at a time. A second one would replace the first before anybody had
                # trained to it.
                if id in self._busy or not self._is_complete(id):
                    raise failed_precondition(f"trial {id} has an operation that is not completed")
                self._busy.add(id)
            case CloseTrial(request_id=id):
                self._require_open(id)
                self._closed.add(id)
            case SetProgress(progress=progress):
                if not (math.isfinite(progress) and 0 <= progress <= 1):
                    raise invalid(f"progress must be from 0 to 1, not {progress}")

    def _create(self, id: str) -> None:
        if not ids.is_request_id(id):
            raise invalid(f"request id '{id}' is not valid: it has {ids.REQUEST_ID_RULE}")
        if id in self._created or find_trial(self._state, self._experiment_id, id) is not None:
            raise Refused(Problem("already_exists", f"trial {id} already exists"))
        self._created.add(id)

    def _require_open(self, id: str) -> None:
        trial = find_trial(self._state, self._experiment_id, id)
        if trial is None and id not in self._created:
            raise Refused(Problem("not_found", f"trial {id} not found"))
        over = trial is not None and not is_applicable(self._state, self._experiment_id, CloseTrial(id))
        if id in self._closed or (trial is not None and trial.closed and not over):
            raise failed_precondition(f"trial {id} is closed")

    def _is_complete(self, id: str) -> bool:
        trial = find_trial(self._state, self._experiment_id, id)
        return trial is None or trial.complete
