"""A service as the runner sees it: pure functions over a folded state.

The state is a dataclass whose fields are dictionaries `id -> frozen record`. `evolve` replaces records and
returns their keys, so that a snapshot is a delta and reactions look only at what changed.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from det_contracts import subjects
from det_contracts.envelope import PassedOver, Recorded
from services.kit.log import Stored
from services.kit.records import Reader, read_event, reader_of
from services.kit.roots import Roots

Key = tuple[str, Any]
"""Key of a record: (field of the state, id)."""

S = TypeVar("S")


class Call(msgspec.Struct, frozen=True):
    """What accompanies a command: a random id, the time, and whether a script sent it."""

    id: str
    at: float
    script: str = ""
    """The run whose script sends the command in its owner's name; empty for users and services."""


class Result(msgspec.Struct, frozen=True):
    """The result of a command: events to append as one batch, and the value of the answer."""

    events: Sequence[Any] = ()
    value: Any = None


class TimerKind(NamedTuple):
    """One kind of times that a state waits for. Each belongs to a record of one table."""

    waiting: Callable[[Any], Iterable[tuple[float, Any]]]
    """Returns all of them, as due time in seconds since the epoch and id of the record, earliest first."""
    fact: Callable[[Any, float, Any], Any]
    """Returns the event that says that one of them has come. Once it is folded, nothing waits for that time.
    """


@dataclass(frozen=True)
class Rules(Generic[S]):
    """One service's decisions. Every function is pure: called again, it returns the same."""

    owner: str
    state: type[S]
    evolve: Callable[[S, Recorded], Iterable[Key]]
    """Folds one event into the state in place. Returns the keys of the records it replaced."""
    react: Callable[[S, Key], Sequence[Any]]
    """Returns the events that the state calls for about one changed record; none once they were read back.

    Every prefix of them must be valid by itself."""
    commands: Mapping[Any, Callable[[S, Any, Call], Result]] = field(default_factory=dict)
    """One function per command. Raises `Refused`."""
    answers: Mapping[Any, Callable[[S, Any], Any]] = field(default_factory=dict)
    """One function per query that the folded state answers."""
    timers: Mapping[str, TimerKind] = field(default_factory=dict)
    """What the state waits for, by table."""
    streams: Mapping[str, Sequence[str]] = field(default_factory=lambda: {subjects.CONTROL: ()})
    """Streams to fold, each with subject filters; none means the whole stream."""
    reads: frozenset[type] | None = None
    """Kinds of events of CONTROL on which anything in the process depends: its fold, its read model, its
    listeners (docs/decisions/0102). All others are passed over before they are decoded. None: all."""
    decode: Mapping[str, Callable[[Stored, str], Recorded]] = field(default_factory=dict)
    """Decoders for streams whose messages do not use the event codec."""
    holds: Callable[[S], bool] | None = None
    """Whether streams other than CONTROL must not be read yet."""
    skips: Callable[[S, Stored], bool] | None = None
    """Whether a message of a stream other than CONTROL is another process's. It is passed over then."""
    may_react_ahead: Callable[[S, S, Sequence[Any]], bool] | None = None
    """Whether events that the state predicted after a command calls for may be in one batch with the
    command's (docs/decisions/0091). It is given the state, the predicted one and the events, and must refuse
    those that would not hold if events of others are stored before the batch. None: they never are."""
    roots: Roots[S] | None = None
    """Which records belong together and are evicted from memory together; None if all stay in memory."""
    fold_version: int = 1
    """Increase it with every change that derives a different state from the same log: what an event does, an
    event that is newly folded, a field of a record. The state is then rebuilt from the log
    (`tests/history/folds.py`)."""

    def __post_init__(self) -> None:
        if self.fold_version != 1 and set(self.streams) != {subjects.CONTROL}:
            others = ", ".join(sorted(set(self.streams) - {subjects.CONTROL}))
            raise ValueError(
                f"{self.owner} folds {others}, which discard old messages, so its state cannot be "
                "rebuilt: leave fold_version at 1, and change what is stored by a migration"
            )

    def is_held(self, stream: str, state: S) -> bool:
        """Whether a stream must not be read yet."""
        return self.holds is not None and stream != subjects.CONTROL and self.holds(state)

    def reader(self, stream: str, always: frozenset[type], state: Callable[[], S]) -> Reader:
        """Return the decoder of a stream, which passes over what nothing in the process depends on.

        `always` are kinds of events of CONTROL that are read whatever the service folds.
        """
        if stream == subjects.CONTROL:
            default = read_event if self.reads is None else reader_of(self.reads | always)
            return self.decode.get(stream, default)
        read, skips = self.decode.get(stream, read_event), self.skips
        if skips is None:
            return read

        def read_own(message: Stored, stream: str) -> Recorded | PassedOver:
            return PassedOver() if skips(state(), message) else read(message, stream)

        return read_own


def derived() -> Any:
    """A state field that `__post_init__` derives from the records.

    It holds no records and is never stored.
    """
    return field(init=False, repr=False, compare=False, metadata={"derived": True})


def _records(state: Any) -> list[str]:
    return [f.name for f in fields(state) if "derived" not in f.metadata]


def record_types(state: type[Any]) -> Mapping[str, tuple[type, type]]:
    """Map each field of a state to the types of its ids and of its records."""
    return _types_of(cast(Hashable, state))


@cache
def _types_of(state: Any) -> Mapping[str, tuple[type, type]]:
    # Annotations are strings, and evaluating those of a state takes a millisecond.
    hints = typing.get_type_hints(state)
    return {name: typing.get_args(hints[name]) for name in _records(state)}


def record_decoders(state: type[Any]) -> Mapping[str, msgspec.json.Decoder[Any]]:
    """Map each field of a state to the decoder of its records as they are stored."""
    return _decoders_of(cast(Hashable, state))


@cache
def _decoders_of(state: Any) -> Mapping[str, msgspec.json.Decoder[Any]]:
    return {kind: msgspec.json.Decoder(record) for kind, (_, record) in _types_of(state).items()}


def every_key(state: object) -> list[Key]:
    """Return the keys of all records in a state, in insertion order."""
    return [(name, key) for name in _records(state) for key in getattr(state, name)]


def dump(state: object) -> dict[str, Any]:
    """Return the whole state as sorted plain data: what a rebuild must reproduce."""
    tables = {name: getattr(state, name) for name in _records(state)}
    return {name: {str(k): msgspec.to_builtins(t[k]) for k in sorted(t)} for name, t in tables.items()}
