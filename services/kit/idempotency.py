"""Executes requests once: a repeated `Idempotency-Key` gets the answer of the first request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar

import msgspec

from det_contracts.creation import Creation, Once
from det_contracts.envelope import Recorded
from det_contracts.problems import Problem, Refused
from services.kit.rules import Call, Key, Result
from services.kit.sorted_keys import SortedKeys

S = TypeVar("S")
FIELD = "creations"
"""Name of the state field with earlier results, `creations: dict[str, RequestResult]` by request id.

`made_at` is its index.
"""
KEY_LIFETIME_S = 7 * 86_400.0
"""Seconds for which a key is remembered, by the timestamps of events in the log."""
MAX_EXPIRED_PER_KEY = 50
"""Maximum number of expired keys removed per new one."""


class RequestResult(msgspec.Struct, frozen=True):
    """The result of a request with a key."""

    key: str
    digest: str
    value: Any
    at: float = 0.0


def results_by_age(creations: Mapping[str, RequestResult]) -> SortedKeys:
    """Return the index `made_at` of a state's creations: (creation time, request id)."""
    return SortedKeys((result.at, id) for id, result in creations.items())


def earlier_result(creations: Mapping[str, RequestResult], once: Once | None) -> RequestResult | None:
    """Return the result of an earlier identical request.

    Raises `Refused` if its key was used for another one.
    """
    earlier = creations.get(once.request_id) if once is not None else None
    if earlier is not None and once is not None and earlier.digest != once.digest:
        raise Refused(
            Problem(
                "already_exists",
                f"Idempotency-Key '{once.key}' was used before, for another request: "
                "send the same request with it, or this one with a new key",
            )
        )
    return earlier


def idempotent(
    rule: Callable[[S, Any, Call], Result], event_type: type[Any]
) -> Callable[[S, Any, Call], Result]:
    """Wrap a command's rule to record the result of a keyed request as an `event_type` of the owner."""

    def keyed(state: S, command: Creation, call: Call) -> Result:
        if command.once is None:
            return rule(state, command, call)
        earlier = earlier_result(getattr(state, FIELD), command.once)
        if earlier is not None:
            return Result(value=earlier.value)
        # The result is an event of the same decision: if the process dies in between, neither of the two is
        # there.
        result = rule(state, command, call)
        once, reason = command.once, "the request carried an Idempotency-Key"
        fact = event_type(once.request_id, once.key, once.digest, result.value, reason)
        return Result([*result.events, fact], result.value)

    return keyed


def fold_result(state: Any, recorded: Recorded) -> Iterable[Key]:
    """Fold a `CreationKept` event and forget some expired ones."""
    event, creations = recorded.event, getattr(state, FIELD)
    earlier, id = creations.get(event.request_id), event.request_id
    state.made_at.swap((earlier.at, id) if earlier else None, (recorded.at, id))
    creations[id] = RequestResult(event.key, event.digest, event.value, recorded.at)
    yield FIELD, id
    # By the time of this event and not by the clock, so that every replica forgets the same keys.
    for at, old in list(islice(state.made_at.up_to(recorded.at - KEY_LIFETIME_S), MAX_EXPIRED_PER_KEY)):
        state.made_at.discard(at, old)
        del creations[old]
        yield FIELD, old
