"""A state as it would be after some events, without changing the state.

A round decides many commands before any of their events is in the log, and each must see the effects of those
before it: the next number, a name that is taken. The events are therefore folded into a view that writes
beside the state. The view is discarded; what counts is what is read back from the log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, MutableMapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

S = TypeVar("S")
_NOTHING = object()
_MUTABLE = (dict, set, list)


class Layer(MutableMapping[Any, Any]):
    """A copy-on-write dictionary over another, in dictionary order."""

    __slots__ = ("_added", "_base", "_changes", "_deleted")

    def __init__(self, below: dict[Any, Any]) -> None:
        self._base = below
        self._changes: dict[Any, Any] = {}
        self._deleted: set[Any] = set()
        self._added = 0
        """Number of keys in `_changes` that `_base` does not show."""

    def _find(self, key: Any) -> Any:
        value = self._changes.get(key, _NOTHING)
        if value is not _NOTHING or key in self._deleted:
            return value
        value = self._base.get(key, _NOTHING)
        if isinstance(value, _MUTABLE):
            # An index: changes to it belong to this view.
            value = self._changes[key] = value.copy()
        return value

    def __getitem__(self, key: Any) -> Any:
        value = self._find(key)
        return self._missing(key) if value is _NOTHING else value

    def _missing(self, key: Any) -> Any:
        if isinstance(self._base, defaultdict) and self._base.default_factory is not None:
            # Not `self._base[key]`: that would create the entry in the state itself.
            self[key] = made = self._base.default_factory()
            return made
        raise KeyError(key)

    def get(self, key: Any, default: Any = None) -> Any:
        value = self._find(key)
        return default if value is _NOTHING else value

    def __contains__(self, key: object) -> bool:
        return key in self._changes or (key in self._base and key not in self._deleted)

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self._changes and not self._in_base(key):
            self._added += 1
        self._changes[key] = value

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        self._changes.pop(key, None)
        if self._in_base(key):
            self._deleted.add(key)
        else:
            self._added -= 1

    def _in_base(self, key: Any) -> bool:
        # `dict`'s own method: a table that pages would ask the database for each record that is made here.
        return dict.__contains__(self._base, key) and key not in self._deleted

    def __iter__(self) -> Iterator[Any]:
        # In the order that the dictionary would have, because rules may depend on the order of insertion.
        for key in self._base:
            if key not in self._deleted:
                yield key
        for key in self._changes:
            if not self._in_base(key):
                yield key

    def __len__(self) -> int:
        return len(self._base) - len(self._deleted) + self._added


def view_of(state: S) -> S:
    """Return a view of a state to fold events into.

    Each part must be a dictionary or have a method `layer()` that returns such a view of it; otherwise raises
    `TypeError`. The state must not change while the view is in use.
    """
    # Without `__init__`, which may compute indexes over a large state.
    view: S = object.__new__(type(state))
    for name in _parts_of(cast(Hashable, type(state))):
        part = getattr(state, name)
        if isinstance(part, dict):
            layer: Any = Layer(part)
        elif hasattr(part, "layer"):
            layer = part.layer()
        else:
            # Refused rather than shared: a fold into the view would then change the real state.
            raise TypeError(f"{type(state).__name__}.{name} cannot be seen through: it has no layer()")
        setattr(view, name, layer)
    return view


@cache
def _parts_of(state: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(state))
