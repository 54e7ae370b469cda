"""What was folded and is not in the database yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from det_contracts.envelope import Recorded
from services.kit.rules import Key

BACKLOG_LIMIT = 20_000
"""Default number of unsaved events at which folding pauses; a service may set its own."""
BACKLOG_BYTES = 8 * 1024 * 1024
"""Size of the messages with unsaved events of a read model at which folding pauses.

A save takes as long as what it writes is large, and everything else of the service waits for it: a flood of
large messages must not make it long.
"""


class UnsavedRecord(msgspec.Struct, gc=False):
    # No tuple: one is made for each record that each portion changes, and takes a third of the time.
    record: Any
    """None if the fold dropped it."""
    root: str | None
    portion: int
    """Number of the folded portion that changed it last."""


class Unsaved:
    """Changed records, evicted roots and events of the read model, in log order."""

    def __init__(self) -> None:
        self.records: dict[Key, UnsavedRecord] = {}
        self.evicted: dict[str, None] = {}
        """Roots evicted from memory that the next start need not load."""
        self.events: list[Recorded] = []
        self.bytes = 0
        """Size of the messages that the events were read from."""
        self._sizes: dict[int, int] = {}
        """The same by number of the portion."""

    def add_events(
        self, events: Sequence[Recorded], portion: int, size: int, kinds: frozenset[type] | None
    ) -> None:
        """Add the events of a portion, read from messages of `size` bytes. Only those of `kinds`, if given.

        Others would call for a save that has nothing to write: a rebuild reads a hundred of them for each.
        """
        wanted = events if kinds is None else [e for e in events if type(e.event) in kinds]
        if wanted:
            self.events.extend(wanted)
            self._sizes[portion] = size
            self.bytes += size

    def share_of(self, limit: int, *, count_records: bool) -> float:
        """How much this is of what may be unsaved: above 1, folding pauses."""
        count = len(self.events) + (len(self.records) if count_records else 0)
        return max(count / limit, self.bytes / BACKLOG_BYTES)

    def take(self) -> Unsaved:
        """Return everything, and be empty."""
        taken = Unsaved()
        taken.records, self.records = self.records, {}
        taken.evicted, self.evicted = self.evicted, {}
        taken.events, self.events = self.events, []
        taken._sizes, self._sizes = self._sizes, {}
        taken.bytes, self.bytes = self.bytes, 0
        return taken

    def put_back(self, taken: Unsaved) -> None:
        """Add what could not be saved. What was folded meanwhile is newer."""
        self.records = taken.records | self.records
        self.evicted = taken.evicted | self.evicted
        self.events = taken.events + self.events
        self._sizes = taken._sizes | self._sizes
        self.bytes += taken.bytes

    def discard_saved(self, stored: Mapping[str, int], portion: int) -> None:
        """Drop what another replica has saved: events up to `stored`, records up to `portion`."""
        self.events = [e for e in self.events if e.position > stored.get(e.stream, 0)]
        self.records = {key: unsaved for key, unsaved in self.records.items() if unsaved.portion > portion}
        self._sizes = {number: size for number, size in self._sizes.items() if number > portion}
        self.bytes = sum(self._sizes.values())
        # Which roots the next start leaves in the database is for the replica that writes there to say.
        self.evicted.clear()

    def record_values(self) -> dict[Key, Any]:
        return {key: unsaved.record for key, unsaved in self.records.items()}

    def record_roots(self) -> dict[Key, str]:
        return {key: unsaved.root for key, unsaved in self.records.items() if unsaved.root is not None}
