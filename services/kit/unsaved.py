"""What was folded and is not in the database yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from det_contracts.envelope import Recorded
from services.kit.rules import Key


class UnsavedRecord(NamedTuple):
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

    def take(self) -> Unsaved:
        """Return everything, and be empty."""
        taken = Unsaved()
        taken.records, self.records = self.records, {}
        taken.evicted, self.evicted = self.evicted, {}
        taken.events, self.events = self.events, []
        return taken

    def put_back(self, taken: Unsaved) -> None:
        """Add what could not be saved. What was folded meanwhile is newer."""
        self.records = taken.records | self.records
        self.evicted = taken.evicted | self.evicted
        self.events = taken.events + self.events

    def discard_saved(self, stored: Mapping[str, int], portion: int) -> None:
        """Drop what another replica has saved: events up to `stored`, records up to `portion`."""
        self.events = [e for e in self.events if e.position > stored.get(e.stream, 0)]
        self.records = {key: one for key, one in self.records.items() if one.portion > portion}
        # Which roots the next start leaves in the database is for the replica that writes there to say.
        self.evicted.clear()

    def record_values(self) -> dict[Key, Any]:
        return {key: one.record for key, one in self.records.items()}

    def record_roots(self) -> dict[Key, str]:
        return {key: one.root for key, one in self.records.items() if one.root is not None}
