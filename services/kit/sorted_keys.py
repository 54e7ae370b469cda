"""Sorted sets of tuples: what a state looks records up by, where their own ids do not lead to them.

All indexes of all states have this one shape. A tuple begins with what one asks by and ends with the id of a
record, as in `(experiment, trial)`, so that the trials of an experiment are a run of neighbours: to find, to
count and to change them costs time that grows with the logarithm of the whole, and with what is asked for.

An index is a function of the records and is not stored. Whoever puts or drops a record keeps it true.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from typing import Any

from sortedcontainers import SortedList

Key = tuple[Any, ...]


class _Top:
    """Greater than anything."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_TOP = _Top()


class SortedKeys:
    """A sorted set of tuples. Those with the same beginning must be comparable place by place."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys: SortedList = SortedList(keys)

    def add(self, *key: Any) -> None:
        """Add a tuple that is not there yet."""
        self._keys.add(key)

    def discard(self, *key: Any) -> None:
        """Remove a tuple, where it is there."""
        self._keys.discard(key)

    def swap(self, old: Key | None, new: Key | None) -> None:
        """Put one tuple in the place of another; None stands for none."""
        if old != new:
            if old is not None:
                self.discard(*old)
            if new is not None:
                self.add(*new)

    def scan(self, *prefix: Any, after: Any = None) -> Iterator[Key]:
        """The tuples that begin so, in order; `after`: only those whose next place is greater.

        The set must not change meanwhile.
        """
        low = prefix if after is None else (*prefix, after, _TOP)
        return iter(self._keys.irange(low, (*prefix, _TOP)))

    def ids(self, *prefix: Any, after: Any = None) -> Iterator[Any]:
        """The last places of the tuples that begin so, in order."""
        return (key[-1] for key in self.scan(*prefix, after=after))

    def first(self, *prefix: Any) -> Key | None:
        """The first tuple that begins so."""
        if prefix:
            return next(self.scan(*prefix), None)
        # Every fold asks for the next due times: most of the time there are none.
        return self._keys[0] if self._keys else None

    def descending(self, *prefix: Any) -> Iterator[Key]:
        """The tuples that begin so, last one first."""
        return iter(self._keys.irange(prefix, (*prefix, _TOP), reverse=True))

    def ascending_from(self, key: Key, shared: int) -> Iterator[Key]:
        """A tuple and those behind it that begin with the same `shared` places, in order."""
        return iter(self._keys.irange(key, (*key[:shared], _TOP)))

    def descending_from(self, key: Key, shared: int) -> Iterator[Key]:
        """A tuple and those before it that begin with the same `shared` places, last one first."""
        return iter(self._keys.irange(key[:shared], key, reverse=True))

    def upto(self, bound: Any) -> Iterator[Key]:
        """The tuples whose first place is not greater."""
        return iter(self._keys.irange(None, (bound, _TOP)))

    def count(self, *prefix: Any) -> int:
        """How many tuples begin so."""
        if not prefix:
            return len(self)
        return int(self._keys.bisect_left((*prefix, _TOP)) - self._keys.bisect_left(prefix))

    def __contains__(self, key: Key) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[Key]:
        return self.scan()

    def __len__(self) -> int:
        return len(self._keys)

    def layer(self) -> SortedKeys:
        """A view that can be changed while this set stays as it is."""
        return _Layer(self)


class LoadingKeys(SortedKeys):
    """An index of records that may be away: whoever asks by a first place has what stands under it loaded.

    Putting and discarding load nothing, and neither does a look at all that is loaded.
    """

    def __init__(self, load: Callable[[Any], object], keys: Iterable[Key] = ()) -> None:
        """`load` looks for a record of the root that a first place stands for."""
        super().__init__(keys)
        self._load = load

    def scan(self, *prefix: Any, after: Any = None) -> Iterator[Key]:
        if prefix:
            self._load(prefix[0])
        return super().scan(*prefix, after=after)

    def descending(self, *prefix: Any) -> Iterator[Key]:
        if prefix:
            self._load(prefix[0])
        return super().descending(*prefix)

    def ascending_from(self, key: Key, shared: int) -> Iterator[Key]:
        self._load(key[0])
        return super().ascending_from(key, shared)

    def descending_from(self, key: Key, shared: int) -> Iterator[Key]:
        self._load(key[0])
        return super().descending_from(key, shared)

    def count(self, *prefix: Any) -> int:
        if prefix:
            self._load(prefix[0])
        return super().count(*prefix)


_NO_KEYS: SortedList = SortedList()
_NOTHING = SortedKeys()
"""What layers hold in which nothing was added or taken, as in most: a round makes one of every index.

Both stay empty: a layer has a set of its own before it changes it.
"""


class _Layer(SortedKeys):
    """What was added to a set, and what was taken from it."""

    def __init__(self, below: SortedKeys) -> None:
        self._keys = _NO_KEYS
        self._below = below
        self._gone = _NOTHING

    def add(self, *key: Any) -> None:
        if key in self._gone:
            self._gone.discard(*key)
            return
        if self._keys is _NO_KEYS:
            self._keys = SortedList()
        super().add(*key)

    def update(self, keys: Collection[Key]) -> None:
        for key in keys:
            self.add(*key)

    def discard(self, *key: Any) -> None:
        if self._keys.__contains__(key):
            super().discard(*key)
        elif key in self._below and key not in self._gone:
            if self._gone is _NOTHING:
                self._gone = SortedKeys()
            self._gone.add(*key)

    def first(self, *prefix: Any) -> Key | None:
        return next(self.scan(*prefix), None)

    def scan(self, *prefix: Any, after: Any = None) -> Iterator[Key]:
        return merge(self._left(self._below.scan(*prefix, after=after)), super().scan(*prefix, after=after))

    def descending(self, *prefix: Any) -> Iterator[Key]:
        return merge(self._left(self._below.descending(*prefix)), super().descending(*prefix), reverse=True)

    def ascending_from(self, key: Key, shared: int) -> Iterator[Key]:
        below = self._left(self._below.ascending_from(key, shared))
        return merge(below, super().ascending_from(key, shared))

    def descending_from(self, key: Key, shared: int) -> Iterator[Key]:
        below = self._left(self._below.descending_from(key, shared))
        return merge(below, super().descending_from(key, shared), reverse=True)

    def upto(self, bound: Any) -> Iterator[Key]:
        return merge(self._left(self._below.upto(bound)), super().upto(bound))

    def count(self, *prefix: Any) -> int:
        if not prefix:
            return len(self)
        return self._below.count(*prefix) - self._gone.count(*prefix) + super().count(*prefix)

    def _left(self, keys: Iterator[Key]) -> Iterator[Key]:
        return (key for key in keys if key not in self._gone)

    def __contains__(self, key: Key) -> bool:
        return self._keys.__contains__(key) or (key in self._below and key not in self._gone)

    def __len__(self) -> int:
        return len(self._below) - len(self._gone) + len(self._keys)
