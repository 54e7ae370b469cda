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

    __slots__ = ("_added", "_below", "_gone", "_own")

    def __init__(self, below: dict[Any, Any]) -> None:
        self._below = below
        self._own: dict[Any, Any] = {}
        self._gone: set[Any] = set()
        self._added = 0
        """Number of keys in `_own` that `_below` does not show."""

    def _look(self, key: Any) -> Any:
        found = self._own.get(key, _NOTHING)
        if found is not _NOTHING or key in self._gone:
            return found
        found = self._below.get(key, _NOTHING)
        if isinstance(found, _MUTABLE):
            # An index: changes to it belong to this view.
            found = self._own[key] = found.copy()
        return found

    def __getitem__(self, key: Any) -> Any:
        found = self._look(key)
        return self._missing(key) if found is _NOTHING else found

    def _missing(self, key: Any) -> Any:
        if isinstance(self._below, defaultdict) and self._below.default_factory is not None:
            self[key] = made = self._below.default_factory()
            return made
        raise KeyError(key)

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._look(key)
        return default if found is _NOTHING else found

    def __contains__(self, key: object) -> bool:
        return key in self._own or (key in self._below and key not in self._gone)

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self._own and not self._shown(key):
            self._added += 1
        self._own[key] = value

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        self._own.pop(key, None)
        if self._shown(key):
            self._gone.add(key)
        else:
            self._added -= 1

    def _shown(self, key: Any) -> bool:
        return key in self._below and key not in self._gone

    def __iter__(self) -> Iterator[Any]:
        for key in self._below:
            if key not in self._gone:
                yield key
        for key in self._own:
            if not self._shown(key):
                yield key

    def __len__(self) -> int:
        return len(self._below) - len(self._gone) + self._added


def view_of(state: S) -> S:
    """Return a view of a state to fold events into.

    Each part must be a dictionary or have a method `layer()` that returns such a view of it; otherwise raises
    `TypeError`. The state must not change while the view is in use.
    """
    view: S = object.__new__(type(state))
    for name in _parts_of(cast(Hashable, type(state))):
        part = getattr(state, name)
        if isinstance(part, dict):
            layer: Any = Layer(part)
        elif hasattr(part, "layer"):
            layer = part.layer()
        else:
            raise TypeError(f"{type(state).__name__}.{name} cannot be seen through: it has no layer()")
        setattr(view, name, layer)
    return view


@cache
def _parts_of(state: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(state))
