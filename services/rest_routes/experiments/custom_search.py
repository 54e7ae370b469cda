"""Custom search methods, run by the user outside the cluster (searchers spec, section 8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from det_contracts import queries
from det_contracts.commands import PostOperations
from det_contracts.custom_search import (
    CloseTrial,
    CreateTrial,
    CustomOperation,
    SetProgress,
    ShutDown,
    TrainTo,
)
from det_contracts.limits import MAX_EXACT_INTEGER
from det_contracts.problems import invalid
from services.catalogue.catalogue import Catalogue
from services.catalogue.waiters import EXPERIMENT_OR_TRIALS, Fact
from services.rest_requests.api_call import Authenticated
from services.rest_requests.body import Body, request_schema
from services.rest_requests.streaming import wait_until
from services.web.routes import Routes

router = Routes()
LONG_POLL_S = 60.0
PROGRESS_S = 1.0
INACTIVE_ID = -1
Object = dict[str, Any]


@router.get("/experiments/{experiment_id}/searcher_events", ("view", "experiment"))
async def events(call: Authenticated, experiment_id: int) -> Response:
    """All unanswered events. If there are none, waits up to a minute for the first one."""
    call.catalogue.experiment(experiment_id)
    query = queries.SearcherEvents(experiment_id)
    deadline = asyncio.get_running_loop().time() + LONG_POLL_S
    while True:
        # Before the query: what is folded while it is answered must end the wait.
        position = call.catalogue.position
        # A searcher that is behind would list events that are answered, and they would be answered again.
        answer = await call.peers.query(query, position=position)
        left = deadline - asyncio.get_running_loop().time()
        if answer["state"] != "ACTIVE":
            # Clients of 0.25 end their loop at this event, whatever else is unanswered.
            gone = {"experimentState": f"STATE_{answer['state']}"}
            return call.answer({"searcherEvents": [{"id": INACTIVE_ID, "experimentInactive": gone}]})
        if answer["events"] or left <= 0:
            return call.answer(
                {"searcherEvents": [_shown(queued_event) for queued_event in answer["events"]]}
            )
        # Progress of trials is not part of the folded state, so the searcher is asked again periodically.
        changed = _experiment_changed(call.catalogue, experiment_id, position)
        if not await wait_until(call, changed, min(left, PROGRESS_S)):
            return call.answer({"searcherEvents": []})


def _experiment_changed(catalogue: Catalogue, experiment_id: int, since: int) -> Fact:
    """The fact that an event of an experiment was folded after a position."""
    return Fact(lambda _: catalogue.position > since, ((EXPERIMENT_OR_TRIALS, experiment_id),))


def _shown(queued_event: Object) -> Object:
    event = queued_event["event"]
    return {"id": queued_event["id"], **_EVENTS[event["type"]](event)}


_REASONS = {"INVALID_HP", "USER_REQUESTED_STOP", "USER_CANCELED"}


def _reason(name: str) -> str:
    reason = "INVALID_HP" if name == "INIT_INVALID_HP" else name
    return f"EXITED_REASON_{reason if reason in _REASONS else 'UNSPECIFIED'}"


_EVENTS: dict[str, Callable[[Object], Object]] = {
    "initial_operations": lambda e: {"initialOperations": {}},
    "trial_created": lambda e: {"trialCreated": {"requestId": e["request_id"]}},
    "validation_completed": lambda e: {
        "validationCompleted": {
            "requestId": e["request_id"],
            "metric": e["metric"],
            "validateAfterLength": str(e["length"]),
        }
    },
    "trial_closed": lambda e: {"trialClosed": {"requestId": e["request_id"]}},
    "trial_exited_early": lambda e: {
        "trialExitedEarly": {"requestId": e["request_id"], "exitedReason": _reason(e["reason"])}
    },
    "trial_progress": lambda e: {"trialProgress": {"requestId": e["request_id"], "partialUnits": e["units"]}},
}


class SearcherOperations(Body):
    """POST /experiments/{id}/searcher_operations"""

    searcher_operations: list[dict[str, Any]] | None = None
    triggered_by_event: dict[str, Any]


@router.post(
    "/experiments/{experiment_id}/searcher_operations",
    ("control", "experiment"),
    **request_schema(SearcherOperations),
)
async def post(call: Authenticated, experiment_id: int) -> Response:
    """Submit operations for an event. They answer that event and all events before it."""
    body = await call.json()
    if not isinstance(body, dict):
        raise invalid("the request: a JSON object is expected")
    listed = _field(body, "searcherOperations") or []
    trigger = _field(body, "triggeredByEvent") or {}
    id = trigger.get("id") if isinstance(trigger, dict) else None
    if not isinstance(listed, list) or not isinstance(id, int):
        raise invalid("searcherOperations must be a list, and triggeredByEvent must have the id of an event")
    operations = tuple(_operation(index, operation) for index, operation in enumerate(listed))
    user = call.user.username
    await call.peers.command(
        PostOperations(experiment_id=experiment_id, operations=operations, triggered_by=id, user=user)
    )
    return call.answer({})


def _field(body: Object, name: str) -> Any:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return body.get(name, body.get(snake))


def _operation(index: int, operation: Any) -> CustomOperation:
    for name, read in _OPERATIONS.items():
        fields = _field(operation, name) if isinstance(operation, dict) else None
        if isinstance(fields, dict):
            try:
                return read(fields)
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise invalid(f"searcherOperations[{index}].{name}: {error!r}") from None
    raise invalid(f"searcherOperations[{index}]: one of {', '.join(_OPERATIONS)} is expected")


def _create(fields: Object) -> CustomOperation:
    hparams = msgspec.json.decode(_field(fields, "hyperparams") or "{}", type=dict[str, Any])
    return CreateTrial(str(_required_field(fields, "requestId")), hparams)


def _train(fields: Object) -> CustomOperation:
    wanted = _required_field(fields, "validateAfter")
    if not isinstance(wanted, dict):
        raise TypeError("validateAfter must be a JSON object")
    length = int(_required_field(wanted, "length"))
    if length > MAX_EXACT_INTEGER:
        raise ValueError(f"length must be at most {MAX_EXACT_INTEGER}")
    return TrainTo(str(_required_field(wanted, "requestId")), length)


def _required_field(fields: Object, name: str) -> Any:
    value = _field(fields, name)
    if value is None:
        raise ValueError(f"{name} is missing")
    return value


_OPERATIONS: dict[str, Callable[[Object], CustomOperation]] = {
    "createTrial": _create,
    "trialOperation": _train,
    "closeTrial": lambda fields: CloseTrial(str(_required_field(fields, "requestId"))),
    "shutDown": lambda fields: ShutDown(bool(fields.get("cancel")), bool(fields.get("failure"))),
    "setSearcherProgress": lambda fields: SetProgress(float(fields.get("progress") or 0.0)),
}
