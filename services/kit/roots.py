"""Paging by root: records of finished things stay in the database until they are looked up.

Records of a paged table belong to a *root*, such as an experiment with all its trials, which is loaded and
evicted whole. Rules do not notice where records are: the tables of a state (`PagedTable`) load what is looked
up, so "the state at a position is a pure fold of the log up to it" holds for all records.

Rules define what belongs together (`Roots`); `services.kit.pager` decides what is evicted when.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from det_contracts.problems import Problem, Refused

S = TypeVar("S")
Key = tuple[str, Any]
Root = str
ALWAYS_LOADED: Final = ""
"""Root of records that are never evicted, in a table whose other records are."""
_NOTHING: Final = object()
_IDS: Final = (int, str)


@dataclass(frozen=True)
class Roots(Generic[S]):
    """What belongs together in one owner's state. All functions are pure and see only loaded records.

    The indexes of a state cover only what is loaded. Code that asks an index about a root must first look up
    one of its records, and an index across several roots must be built from records that are never evicted.
    """

    root_lookups: Mapping[str, Callable[[S, Any], Root | None]]
    """Per paged table: returns the root of the record with an id, whether or not it exists; None if that
    cannot be determined without the record."""
    members: Callable[[S, Root], Iterable[Key]]
    """Returns all records of a loaded root."""
    is_over: Callable[[S, Root], bool]
    """Whether nothing in it is active or waits for a time. Pending reactions are checked separately."""
    index: Callable[[S, Collection[Key]], None]
    """Adds loaded records to the indexes of the state."""
    unindex: Callable[[S, Collection[Key]], None]
    """Removes records that are about to be evicted from the indexes."""
    reference_fields: Mapping[str, str]
    """Fields of events, commands and queries that name records, and the tables of those records."""
    affected_roots: Mapping[str, Callable[[Any], Iterable[Root]]] = field(default_factory=dict)
    """By table whose records never leave: the roots of which one of them says whether they are over."""
    creation_events: Mapping[type, Callable[[Any], Key]] = field(default_factory=dict)
    """Events with the record that they are the first to tell of: nothing is known of it before."""
    _fields_by_type: dict[type, tuple[tuple[str, str], ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cache of `reference_fields` per message type; most types have none of the fields."""

    def root_of(self, state: S, key: Key) -> Root | None:
        """Return a record's root; None if it is never evicted or the root cannot be determined."""
        find = self.root_lookups.get(key[0])
        root = find(state, key[1]) if find is not None else None
        return root or None

    def created_key(self, message: Any) -> Key | None:
        """Return the record that an event is the first to tell of; None if it may have been there before."""
        created = self.creation_events.get(type(message))
        return None if created is None else created(message)

    def referenced_keys(self, message: Any) -> Sequence[Key]:
        """Return the records that an event, command or query names."""
        kind = type(message)
        naming = self._fields_by_type.get(kind)
        if naming is None:
            # Struct fields are attributes of the class.
            naming = tuple(
                (name, table) for name, table in self.reference_fields.items() if hasattr(kind, name)
            )
            self._fields_by_type[kind] = naming
        keys = list[Key]()
        # No generator, as this is asked for each event, and most name one record or none.
        for name, table in naming:
            reference = getattr(message, name)
            if isinstance(reference, _IDS):
                keys.append((table, reference))
            elif isinstance(reference, tuple | list):
                keys += ((table, id) for id in reference if isinstance(id, _IDS))
        return keys


class PageFault(Refused):
    """Records in the database are no longer as they were at this position, so the state is reloaded.

    The caller is told to retry.
    """

    def __init__(self, why: str) -> None:
        super().__init__(Problem("unavailable", f"the state is being reloaded, try again: {why}"))


class PagedTable(dict[Any, Any]):
    """Records by id.

    Looking up a record that is not loaded loads its root; iteration shows what is loaded.
    """

    def __init__(
        self,
        records: Mapping[Any, Any],
        load: Callable[[Any], bool],
        record_absent: Callable[[Any], None] = lambda _: None,
    ) -> None:
        """`load` loads the record with an id and returns whether it exists. It may raise `PageFault`.

        `record_absent` is told of an id that no record has had yet.
        """
        super().__init__(records)
        self._load = load
        self.record_absent = record_absent

    def __missing__(self, id: Any) -> Any:
        if self._load(id):
            return super().__getitem__(id)
        raise KeyError(id)

    def get(self, id: Any, default: Any = None) -> Any:
        """Return the record, loading it if necessary."""
        record = super().get(id, _NOTHING)
        if record is not _NOTHING:
            return record
        # `dict`'s own methods, as a missing record must not be loaded a second time.
        return super().__getitem__(id) if self._load(id) else default

    def __contains__(self, id: object) -> bool:
        return super().__contains__(id) or self._load(id)

    def __delitem__(self, id: Any) -> None:
        if id in self:
            super().__delitem__(id)
        else:
            raise KeyError(id)

    def pop(self, id: Any, *default: Any) -> Any:
        """Remove a record and return it, loading it first if necessary."""
        if id in self:
            return super().pop(id)
        if default:
            return default[0]
        raise KeyError(id)


def experiment_root(_: Any, id: int) -> Root:
    """Return the root for an experiment id. Negative ids stand for things outside any experiment."""
    return str(id) if id > 0 else ALWAYS_LOADED


def root_by_experiment_id(table: str) -> Callable[[Any, Any], Root | None]:
    """Return a root lookup for a table whose records have an `experiment_id`."""

    def find(state: Any, id: Any) -> Root | None:
        record = get_loaded(getattr(state, table), id)
        return None if record is None else str(record.experiment_id)

    return find


def loaded_keys(state: Any, id: Any, *tables: str) -> Iterator[Key]:
    """Yield the keys of the records loaded under one id in several tables."""
    return ((table, id) for table in tables if get_loaded(getattr(state, table), id) is not None)


def get_loaded(table: dict[Any, Any], id: Any) -> Any | None:
    """Return a record if it is loaded, otherwise None. Loads nothing."""
    return dict.get(table, id)
