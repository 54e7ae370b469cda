"""Sorted sets of tuples: secondary indexes by which a state looks up its records.

All indexes of all states have this shape. A tuple begins with the search key and ends with a record's id, as
in `(experiment, trial)`, so the trials of an experiment are adjacent. Finding, counting and changing them
costs time logarithmic in the size of the set plus the size of the result.

An index is a function of the records and is not stored. Code that stores or deletes a record must update it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from typing import Any

from sortedcontainers import SortedList

Key = tuple[Any, ...]


# `irange` needs an upper bound behind every tuple with a prefix, and no value of a field is the largest.
class _Top:
    """Greater than anything."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_TOP = _Top()


class SortedKeys:
    """A sorted set of tuples. Tuples with the same prefix must be comparable element by element."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys: SortedList = SortedList(keys)

    def add(self, *key: Any) -> None:
        """Add a tuple that is not in the set yet."""
        self._keys.add(key)

    def discard(self, *key: Any) -> None:
        """Remove a tuple if it is in the set."""
        self._keys.discard(key)

    def swap(self, old: Key | None, new: Key | None) -> None:
        """Replace one tuple with another. None means no tuple."""
        if old != new:
            if old is not None:
                self.discard(*old)
            if new is not None:
                self.add(*new)

    def scan(self, *prefix: Any, after: Any = None) -> Iterator[Key]:
        """Iterate in order over the tuples with this prefix.

        With `after`, only over those whose next element is greater. The set must not change during the
        iteration.
        """
        if not prefix and after is None:
            # A fast path for due times, which every decision asks for.
            return iter(self._keys)
        # A shorter tuple sorts before all that begin with it, so the prefix is their lower bound.
        low = prefix if after is None else (*prefix, after, _TOP)
        return iter(self._keys.irange(low, (*prefix, _TOP)))

    def ids(self, *prefix: Any, after: Any = None) -> Iterator[Any]:
        """Iterate in order over the last elements of the tuples with this prefix."""
        return (key[-1] for key in self.scan(*prefix, after=after))

    def first(self, *prefix: Any) -> Key | None:
        """The first tuple with this prefix."""
        if prefix:
            return next(self.scan(*prefix), None)
        # A fast path: every fold asks for the next due time, and usually there is none.
        return self._keys[0] if self._keys else None

    def descending(self, *prefix: Any) -> Iterator[Key]:
        """Iterate over the tuples with this prefix in reverse order."""
        return iter(self._keys.irange(prefix, (*prefix, _TOP), reverse=True))

    def ascending_from(self, key: Key, shared: int) -> Iterator[Key]:
        """Iterate in order over a tuple and those after it that share its first `shared` elements."""
        return iter(self._keys.irange(key, (*key[:shared], _TOP)))

    def descending_from(self, key: Key, shared: int) -> Iterator[Key]:
        """Iterate backwards over a tuple and those before it that share its first `shared` elements."""
        return iter(self._keys.irange(key[:shared], key, reverse=True))

    def up_to(self, bound: Any) -> Iterator[Key]:
        """Iterate over the tuples whose first element is at most `bound`."""
        return iter(self._keys.irange(None, (bound, _TOP)))

    def count(self, *prefix: Any) -> int:
        """Return the number of tuples with this prefix."""
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
        """Return a mutable view that leaves this set unchanged."""
        return _Layer(self)


class LoadingKeys(SortedKeys):
    """An index of records that may not be in memory. A lookup by a first element loads the records under it.

    Adding and discarding load nothing, nor does an iteration without a prefix.
    """

    def __init__(self, load: Callable[[Any], object], keys: Iterable[Key] = ()) -> None:
        """`load` looks up a record of the root that a first element stands for."""
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
"""Shared by layers that have no additions or removals, which is most: each round creates one layer per index.

Both stay empty, because a layer creates its own set before changing it."""


class _Layer(SortedKeys):
    """Additions to a set and removals from it."""

    def __init__(self, below: SortedKeys) -> None:
        self._keys = _NO_KEYS
        self._base = below
        self._removed = _NOTHING

    def add(self, *key: Any) -> None:
        # A removed tuple is only uncovered again, for otherwise it would be there twice.
        if key in self._removed:
            self._removed.discard(*key)
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
        elif key in self._base and key not in self._removed:
            if self._removed is _NOTHING:
                self._removed = SortedKeys()
            self._removed.add(*key)

    def first(self, *prefix: Any) -> Key | None:
        return next(self.scan(*prefix), None)

    def scan(self, *prefix: Any, after: Any = None) -> Iterator[Key]:
        return merge(
            self._not_removed(self._base.scan(*prefix, after=after)), super().scan(*prefix, after=after)
        )

    def descending(self, *prefix: Any) -> Iterator[Key]:
        return merge(
            self._not_removed(self._base.descending(*prefix)), super().descending(*prefix), reverse=True
        )

    def ascending_from(self, key: Key, shared: int) -> Iterator[Key]:
        below = self._not_removed(self._base.ascending_from(key, shared))
        return merge(below, super().ascending_from(key, shared))

    def descending_from(self, key: Key, shared: int) -> Iterator[Key]:
        below = self._not_removed(self._base.descending_from(key, shared))
        return merge(below, super().descending_from(key, shared), reverse=True)

    def up_to(self, bound: Any) -> Iterator[Key]:
        return merge(self._not_removed(self._base.up_to(bound)), super().up_to(bound))

    def count(self, *prefix: Any) -> int:
        if not prefix:
            return len(self)
        return self._base.count(*prefix) - self._removed.count(*prefix) + super().count(*prefix)

    def _not_removed(self, keys: Iterator[Key]) -> Iterator[Key]:
        return (key for key in keys if key not in self._removed)

    def __contains__(self, key: Key) -> bool:
        return self._keys.__contains__(key) or (key in self._base and key not in self._removed)

    def __len__(self) -> int:
        return len(self._base) - len(self._removed) + len(self._keys)
