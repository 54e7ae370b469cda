"""Reports what a database rebuilt from the log lacks, because the log no longer holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import structlog

from det_contracts import subjects
from services.kit.database import Database
from services.kit.log import OutcomeUnknown
from services.kit.log_jetstream import JetStreamLog
from services.kit.process_metrics import Reading
from services.kit.snapshot import Snapshot

log = structlog.get_logger()


class Rebuild:
    """Why a service's database starts empty, and what it will lack."""

    def __init__(self, owner: str, damaged: str) -> None:
        """`damaged` says what was wrong with the previous file; empty if nothing was."""
        self._owner = owner
        self._damaged = damaged
        self._lost: dict[str, int] = {}
        self._refold_note = ""
        self._is_requested = False
        self._end = 0
        """Last position of CONTROL when the database began again."""

    async def check(
        self, journal: JetStreamLog, database: Database, snapshot: Snapshot, streams: Iterable[str]
    ) -> None:
        """Warn about each stream that must be read from its beginning but no longer has it.

        CONTROL is kept forever, in the broker or the archive; its readers refuse a gap.
        """
        positions: Mapping[str, int] = await database.read(snapshot.positions)
        others = await database.read(snapshot.other_fold_versions)
        if others and not positions:
            self._log_refold(max(others), snapshot.fold_version)
        rebuilt_for = await database.read(snapshot.rebuilt_for)
        if rebuilt_for and not positions:
            self._is_requested = True
            _, self._end = await journal.bounds(subjects.CONTROL)
        for stream in set(streams) - positions.keys() - {subjects.CONTROL}:
            try:
                state = await journal.state(stream)
            except OutcomeUnknown:
                continue
            if (gone := int(state["first_seq"]) - 1) > 0:
                self._lost[stream] = gone
                self._warn_lost(stream, gone, str(state.get("first_ts", "")))

    def _log_refold(self, stored: int, mine: int) -> None:
        self._refold_note = (
            f"; it is rebuilt from the log: the database holds fold version {stored}, this release has {mine}"
        )
        advice = (
            "another release wrote it: the state is rebuilt from the log, and what that release stored "
            "stays for it"
        )
        log.info("database.other_fold", owner=self._owner, stored=stored, mine=mine, advice=advice)

    def _warn_lost(self, stream: str, gone: int, since: str) -> None:
        advice = (
            f"{stream} holds nothing from before {since}: what this database had of it cannot be rebuilt. "
            "If the file was damaged, it was kept under another name"
        )
        log.warning("database.begins_late", owner=self._owner, stream=stream, messages=gone, advice=advice)

    def starting_note(self) -> str:
        """Return an addition to the starting message, shown until the log is folded."""
        if self._damaged:
            return f"; the database was damaged ({self._damaged}) and is being rebuilt"
        return self._refold_note

    def progress(self, position: int) -> str:
        """How far the rebuild that an administrator asked for is; empty if this start is none."""
        if not self._is_requested:
            return ""
        return f"its database is rebuilt from the log: event {position:,} of {self._end:,}"

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings of the rebuild."""
        damaged = float(bool(self._damaged))
        yield Reading("database_damaged", "1 if the file was found damaged at this start", (), {(): damaged})
        lost = {(stream,): float(count) for stream, count in self._lost.items()}
        yield Reading(
            "database_lost_messages",
            "Messages that were removed from a stream before the database was rebuilt",
            ("stream",),
            lost,
        )
