"""Events about the services themselves, which every service heeds, whatever else it folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from det_contracts import subjects
from det_contracts.envelope import Recorded
from det_contracts.events import Decision
from det_contracts.events.archive import SegmentSealed
from det_contracts.events.gateway import (
    DecisionsRetried,
    EventSkipped,
    LoggingSet,
    RebuildAsked,
    RebuildFromCopyAsked,
)
from services.kit.decider import Decider
from services.kit.rules import Rules
from services.kit.saver import Saver
from services.kit.standstill import Standstill

log = structlog.get_logger()


class ServiceEvents:
    """What one service does when they are folded."""

    def __init__(
        self,
        rules: Rules[Any],
        decider: Decider[Any],
        saver: Saver,
        standstill: Standstill,
        apply_logging: Callable[[LoggingSet], None],
    ) -> None:
        self._rules = rules
        self._decider = decider
        self._saver = saver
        self._standstill = standstill
        self._apply_logging = apply_logging

    def heed(self, recorded: Recorded, positions: Mapping[str, int]) -> None:
        """Do what an event calls for. `positions` are those up to which the streams are folded."""
        _HEED[type(recorded.event)](self, recorded, positions)

    def _on_decision(self, recorded: Recorded, _: Mapping[str, int]) -> None:
        self._decider.read_back(recorded)

    def _on_segment_sealed(self, recorded: Recorded, _: Mapping[str, int]) -> None:
        self._decider.archived_through = max(self._decider.archived_through, recorded.event.last)

    def _on_decisions_retried(self, recorded: Recorded, _: Mapping[str, int]) -> None:
        if recorded.event.owner == self._rules.owner:
            self._decider.retry_parked(recorded.id)

    def _on_rebuild_asked(self, recorded: Recorded, _: Mapping[str, int]) -> None:
        if recorded.event.owner == self._rules.owner:
            self._saver.rebuilds.request(recorded.position)

    def _on_event_skipped(self, recorded: Recorded, positions: Mapping[str, int]) -> None:
        event: EventSkipped = recorded.event
        if not self._standstill.add_skipped(event, positions.get(event.stream, 0)):
            return
        # A replica of another release could fold the event. The log now says that it has no effect.
        log.warning("event.skipped_late", owner=self._rules.owner, at=f"{event.stream} {event.position}")
        if set(self._rules.streams) == {subjects.CONTROL}:
            self._saver.rebuilds.request(recorded.position)

    def _on_logging_set(self, recorded: Recorded, _: Mapping[str, int]) -> None:
        self._apply_logging(recorded.event)


_HEED: dict[type, Callable[[ServiceEvents, Recorded, Mapping[str, int]], None]] = {
    Decision: ServiceEvents._on_decision,
    SegmentSealed: ServiceEvents._on_segment_sealed,
    DecisionsRetried: ServiceEvents._on_decisions_retried,
    EventSkipped: ServiceEvents._on_event_skipped,
    RebuildAsked: ServiceEvents._on_rebuild_asked,
    RebuildFromCopyAsked: ServiceEvents._on_rebuild_asked,
    LoggingSet: ServiceEvents._on_logging_set,
}
KINDS = frozenset(_HEED)
"""The kinds of these events."""
