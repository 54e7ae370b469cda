"""Makes things once: a request that comes again with its `Idempotency-Key` is answered as the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar

import msgspec

from det_contracts.creation import Creation, Once
from det_contracts.envelope import Recorded
from det_contracts.problems import Problem, Refused
from services.kit.rules import Call, Key, Ruling
from services.kit.sorted_keys import SortedKeys

S = TypeVar("S")
FIELD = "creations"
"""Where a state keeps what it made so: `creations: dict[str, Made]`, by request id; beside it, `made_at`."""
KEPT_S = 7 * 86_400.0
"""How long a key leads to what was made with it; by the times of the facts in the log."""
SWEPT = 50
"""How many older ones go, at most, with each that comes."""


class Made(msgspec.Struct, frozen=True):
    """What a request with a key led to."""

    key: str
    digest: str
    value: Any
    at: float = 0.0


def by_age(creations: Mapping[str, Made]) -> SortedKeys:
    """(when it was made, request id) of what a state keeps: its `made_at`."""
    return SortedKeys((one.at, id) for id, one in creations.items())


def made(creations: Mapping[str, Made], once: Once | None) -> Made | None:
    """What this request led to, if it came before; raises `Refused` when its key belongs to another one."""
    known = creations.get(once.request_id) if once is not None else None
    if known is not None and once is not None and known.digest != once.digest:
        raise Refused(
            Problem(
                "already_exists",
                f"Idempotency-Key '{once.key}' was used before, for another request: "
                "send the same request with it, or this one with a new key",
            )
        )
    return known


def once(rule: Callable[[S, Any, Call], Ruling], kept: type[Any]) -> Callable[[S, Any, Call], Ruling]:
    """A command's rule that keeps, as the owner's event `kept`, what a request with a key led to."""

    def keyed(state: S, command: Creation, call: Call) -> Ruling:
        if command.once is None:
            return rule(state, command, call)
        known = made(getattr(state, FIELD), command.once)
        if known is not None:
            return Ruling(value=known.value)
        ruling = rule(state, command, call)
        asked, reason = command.once, "the request carried an Idempotency-Key"
        fact = kept(asked.request_id, asked.key, asked.digest, ruling.value, reason)
        return Ruling([*ruling.events, fact], ruling.value)

    return keyed


def keep(state: Any, recorded: Recorded) -> Iterable[Key]:
    """Fold a `CreationKept`; what was made long before it is forgotten."""
    event, creations = recorded.event, getattr(state, FIELD)
    known, id = creations.get(event.request_id), event.request_id
    state.made_at.swap((known.at, id) if known else None, (recorded.at, id))
    creations[id] = Made(event.key, event.digest, event.value, recorded.at)
    yield FIELD, id
    for at, old in list(islice(state.made_at.upto(recorded.at - KEPT_S), SWEPT)):
        state.made_at.discard(at, old)
        del creations[old]
        yield FIELD, old
