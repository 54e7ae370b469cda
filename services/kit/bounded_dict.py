"""A dict of bounded size, for what is remembered only to save work."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """Keeps the entries that were set last, and forgets the oldest of too many.

    Use `move_to_end` to keep an entry that was only read.

    Example:
        ```python
        seen = BoundedDict[str, int](max_entries=2)
        seen["a"], seen["b"], seen["a"], seen["c"] = 1, 2, 3, 4
        list(seen)  # ["a", "c"]
        ```
    """

    def __init__(self, max_entries: int) -> None:
        """`max_entries` is the number of entries to keep, 1 or more."""
        super().__init__()
        self._max_entries = max_entries

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._max_entries:
            self.popitem(last=False)
