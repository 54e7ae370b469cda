"""Paging by root: records of what is over lie in the database, until somebody looks for one.

Records of a paged table belong to a *root*, such as an experiment with all its trials, which comes and goes
whole. To rules it makes no difference where its records are: the tables of a state (`PagedTable`) load what
is looked for, so "the state at a position is a pure fold of the log up to it" holds of all records.

Rules say what belongs together (`Roots`); `services.kit.pager` decides who goes when.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from det_contracts.problems import Problem, Refused

S = TypeVar("S")
Key = tuple[str, Any]
Root = str
ALWAYS_LOADED: Final = ""
"""In the place of a root: of a record that never leaves, in a table whose other records do."""
_NOTHING: Final = object()


@dataclass(frozen=True)
class Roots(Generic[S]):
    """What belongs together in one owner's state. All functions are pure and see loaded records alone.

    The indexes of a state hold what is loaded. So whoever asks an index about a root looks for a record of it
    first, and an index over several roots is made of records that never leave.
    """

    of: Mapping[str, Callable[[S, Any], Root | None]]
    """By paged table: the root of the record with some id, whether or not there is one; None where that
    cannot be told without the record."""
    members: Callable[[S, Root], Iterable[Key]]
    """All records of a loaded root."""
    is_over: Callable[[S, Root], bool]
    """Whether nothing of it is at work, or waits for a time; what its records call for is asked besides."""
    index: Callable[[S, Collection[Key]], None]
    """Enter loaded records into the indexes of the state."""
    unindex: Callable[[S, Collection[Key]], None]
    """Take records out of the indexes that are about to leave."""
    named_by: Mapping[str, str]
    """Fields of events, commands and queries that name records, and the tables these are in."""
    beside: Mapping[str, Callable[[Any], Iterable[Root]]] = field(default_factory=dict)
    """By table whose records never leave: the roots of which one of them says whether they are over."""
    begins: Mapping[type, str] = field(default_factory=dict)
    """Events with the field that names what they are the first to tell of: nothing is known by it before."""
    _naming: dict[type, tuple[tuple[str, str], ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The same of each type of message that was asked about: most have none of the fields."""

    def root_of(self, state: S, key: Key) -> Root | None:
        """What a record belongs to; None where it never leaves, or cannot be told."""
        find = self.of.get(key[0])
        root = find(state, key[1]) if find is not None else None
        return root or None

    def names(self, message: Any) -> Iterator[Key]:
        """The records that an event, a command or a query names."""
        kind = type(message)
        naming = self._naming.get(kind)
        if naming is None:
            # Fields of a struct are attributes of its class.
            naming = tuple((name, table) for name, table in self.named_by.items() if hasattr(kind, name))
            self._naming[kind] = naming
        for name, table in naming:
            found = getattr(message, name)
            if isinstance(found, int | str):
                yield table, found
            elif isinstance(found, tuple | list):
                yield from ((table, one) for one in found if isinstance(one, int | str))


class PageFault(Refused):
    """Records in the database cannot be had as they were at this position: the state is loaded anew.

    Who asked is told to ask again.
    """

    def __init__(self, why: str) -> None:
        super().__init__(Problem("unavailable", f"the state is being loaded anew, ask again: {why}"))


class PagedTable(dict[Any, Any]):
    """Records by id. Looking for one that is not loaded loads its root; iteration shows what is loaded."""

    def __init__(self, known: Mapping[Any, Any], load: Callable[[Any], bool]) -> None:
        """`load` has the record of an id loaded, and says whether there is one; it may raise `PageFault`."""
        super().__init__(known)
        self._load = load

    def __missing__(self, id: Any) -> Any:
        if self._load(id):
            return super().__getitem__(id)
        raise KeyError(id)

    def get(self, id: Any, default: Any = None) -> Any:
        """The record, wherever it lies."""
        found = super().get(id, _NOTHING)
        if found is not _NOTHING:
            return found
        return super().__getitem__(id) if self._load(id) else default

    def __contains__(self, id: object) -> bool:
        return super().__contains__(id) or self._load(id)

    def __delitem__(self, id: Any) -> None:
        if id in self:
            super().__delitem__(id)
        else:
            raise KeyError(id)

    def pop(self, id: Any, *default: Any) -> Any:
        """Take a record out, wherever it lies."""
        if id in self:
            return super().pop(id)
        if default:
            return default[0]
        raise KeyError(id)


def of_experiment(_: Any, id: int) -> Root:
    """The root of what is known by an experiment's number; numbers below 0 stand for what is in none."""
    return str(id) if id > 0 else ALWAYS_LOADED


def of_what_names_it(table: str) -> Callable[[Any, Any], Root | None]:
    """For a table whose records have an `experiment_id`: the root of the record with some id."""

    def find(state: Any, id: Any) -> Root | None:
        known = loaded(getattr(state, table), id)
        return None if known is None else str(known.experiment_id)

    return find


def loaded_by(state: Any, id: Any, *tables: str) -> Iterator[Key]:
    """The records that are loaded under one id, in some tables."""
    return ((table, id) for table in tables if loaded(getattr(state, table), id) is not None)


def loaded(table: dict[Any, Any], id: Any) -> Any | None:
    """A record where it is loaded, else None; loads nothing."""
    return dict.get(table, id)
