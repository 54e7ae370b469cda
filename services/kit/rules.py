"""What a service is, seen from the runner: pure functions over a folded state.

The state is a dataclass whose fields are dictionaries `id -> frozen record`. `evolve` replaces
records and names what it replaced, so that a snapshot is a delta and a reaction looks only
at what moved.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from det_contracts import subjects
from det_contracts.envelope import Recorded
from services.kit.log import Stored
from services.kit.roots import Roots

Key = tuple[str, Any]
"""A record of the state: (field of the state, id)."""

S = TypeVar("S")


class Call(msgspec.Struct, frozen=True):
    """What came with a command: chance, time, and whether a script asks."""

    id: str
    at: float
    script: str = ""
    """The run whose script asks, in its owner's name; empty for a person and for a service."""


class Ruling(msgspec.Struct, frozen=True):
    """What a command leads to: events to append as one batch, and the value of the answer."""

    events: Sequence[Any] = ()
    value: Any = None


@dataclass(frozen=True)
class Rules(Generic[S]):
    """One service's decisions, all pure. Every function may be asked twice and says the same."""

    owner: str
    state: type[S]
    evolve: Callable[[S, Recorded], Iterable[Key]]
    """Fold one event into the state in place; returns the keys of the records it replaced."""
    react: Callable[[S, Key], Sequence[Any]]
    """Events that the state calls for about one record that moved; none once they have been read back.

    Every prefix of them must be sound by itself.
    """
    commands: Mapping[Any, Callable[[S, Any, Call], Ruling]] = field(default_factory=dict)
    """One function per command; raises `Refused`."""
    answers: Mapping[Any, Callable[[S, Any], Any]] = field(default_factory=dict)
    """One function per query that the folded state answers."""
    due: Callable[[S], float | None] = lambda _: None
    """The earliest time that the state waits for; seconds since the epoch."""
    expire: Callable[[S, float], Sequence[Any]] = lambda _, __: ()
    """Facts that due times have come, for all not later than the given time."""
    streams: Mapping[str, Sequence[str]] = field(default_factory=lambda: {subjects.CONTROL: ()})
    """Streams to fold, each with subject filters; none means all of it."""
    decode: Mapping[str, Callable[[Stored, str], Recorded]] = field(default_factory=dict)
    """How messages of a stream become records, where it is not the event codec."""
    roots: Roots[S] | None = None
    """What belongs together in the state, and leaves the memory together; None where all of it stays."""
    fold_version: int = 1
    """Raised with whatever makes another state of the same log: what an event does, an event new to it,
    a field of a record. The state is made again from the log then (`tests/history/folds.py`)."""

    def __post_init__(self) -> None:
        if self.fold_version != 1 and set(self.streams) != {subjects.CONTROL}:
            others = ", ".join(sorted(set(self.streams) - {subjects.CONTROL}))
            raise ValueError(
                f"{self.owner} folds {others}, which let go of their beginnings, so its state cannot be "
                "rebuilt: leave fold_version at 1, and change what is stored by a migration"
            )


def derived() -> Any:
    """A field of a state that `__post_init__` makes of the records: no record itself, never stored."""
    return field(init=False, repr=False, compare=False, metadata={"derived": True})


def _records(state: Any) -> list[str]:
    return [f.name for f in fields(state) if "derived" not in f.metadata]


def record_types(state: type[Any]) -> Mapping[str, tuple[type, type]]:
    """Field of a state -> (type of its ids, type of its records)."""
    return _types_of(cast(Hashable, state))


@cache
def _types_of(state: Any) -> Mapping[str, tuple[type, type]]:
    # Annotations are text: to read those of a state takes a millisecond.
    hints = typing.get_type_hints(state)
    return {name: typing.get_args(hints[name]) for name in _records(state)}


def every_key(state: object) -> list[Key]:
    """All records that a state holds, in the order in which they came."""
    return [(name, key) for name in _records(state) for key in getattr(state, name)]


def dump(state: object) -> dict[str, Any]:
    """A whole state as plain data, ordered: what a rebuild must reproduce."""
    tables = {name: getattr(state, name) for name in _records(state)}
    return {name: {str(k): msgspec.to_builtins(t[k]) for k in sorted(t)} for name, t in tables.items()}
