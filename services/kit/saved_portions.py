"""Which of the portions that a replica has folded are in the database, whichever replica wrote them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from services.kit.awaitable_position import AwaitablePosition
from services.kit.lag import Lag


class SavedPortions:
    """Counts folded portions, and how many of them are saved.

    A save of another replica covers a portion if it reached as far in every stream.
    """

    def __init__(self) -> None:
        self.folded = 0
        """Number of portions folded so far."""
        self.positions: dict[str, int] = {}
        """Per stream, how far they reach."""
        self.loads = 0
        """How often a state was loaded."""
        self.saved = AwaitablePosition()
        """Number of folded portions that are saved."""
        self.lag = Lag()
        """Folded portions, and how many of them are saved."""
        self._unsaved: deque[tuple[int, dict[str, int]]] = deque()
        """Folded portions that are not saved yet, each with the positions reached."""
        self._unfolded_saves: deque[Mapping[str, int]] = deque()
        """With several streams: saves not yet known to be folded here, oldest first."""
        self._folded_save = 0

    def reload(self, positions: Mapping[str, int]) -> None:
        """Continue from a loaded state. Portions that were not saved are folded and counted again."""
        self._unsaved.clear()
        self._unfolded_saves.clear()
        self.positions = dict(positions)
        self.loads += 1
        # Portions of the state that was dropped are never saved: what they held is folded again, or is in
        # what was loaded. Who waits for them has to wait for that.
        self.saved.advance(self.folded)
        self.lag.set_done(self.folded)
        self._folded_save = sum(positions.values())

    def add(self, positions: dict[str, int]) -> int:
        """Count one more folded portion, which reaches so far; returns its number."""
        self.folded += 1
        self.positions = positions
        self._unsaved.append((self.folded, positions))
        self.lag.set_total(self.folded)
        return self.folded

    def mark_saved(self, count: int) -> None:
        """Record that this replica has saved the first `count` portions."""
        self.lag.set_done(count)
        self.saved.advance(count)
        while self._unsaved and self._unsaved[0][0] <= count:
            self._unsaved.popleft()

    def mark_covered(self, stored: Mapping[str, int]) -> None:
        """Record that another replica has saved up to these positions."""
        while self._unsaved and _covers(stored, self._unsaved[0][1]):
            self.saved.advance(self._unsaved.popleft()[0])
        self.lag.restart_age()

    def is_saved(self, portion: int) -> bool:
        """Whether everything up to a portion is saved."""
        return self.saved.position >= portion

    @property
    def are_all_saved(self) -> bool:
        """Whether nothing that is folded is left to save."""
        return not self._unsaved

    def newest_folded_save(self) -> int:
        """Return the sum of positions of the newest save that is folded here in all streams."""
        while self._unfolded_saves and _covers(self.positions, self._unfolded_saves[0]):
            self._folded_save = sum(self._unfolded_saves.popleft().values())
        return self._folded_save

    def track_save(self, saved: Mapping[str, int]) -> None:
        """Note how far a save reached, of this replica or another."""
        # With one stream a position says everything; see `Pages.may_differ_at`.
        if len(saved) > 1 and (not self._unfolded_saves or self._unfolded_saves[-1] != saved):
            self._unfolded_saves.append(saved)
            self.newest_folded_save()


def _covers(stored: Mapping[str, int], positions: Mapping[str, int]) -> bool:
    return all(stored.get(stream, 0) >= position for stream, position in positions.items())
