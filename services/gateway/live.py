"""The live channel: tells pages which of the things that they look at have changed.

It says *that*, not *what*: pages ask again by the REST API, so there is one truth and any replica can serve
anybody. What changes often is told at most ten times a second; a reader that is slow gets less, not late.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator

import msgspec

from det_contracts import subjects
from services.gateway.catalogue import Catalogue
from services.gateway.domain import State
from services.kit.jetstream_feed import AWAY, Broken
from services.kit.log import Log
from services.kit.measures import Reading
from services.kit.rules import Key

EVERY_S = 0.1
AGAIN_S = 1.0
"""Reports are told twice: at once, and when the metrics service has surely stored them."""
PING_S = 15.0
RETRY_S = 1.0
SERIES = ".series"
LONGEST = 200
"""Topics of one page."""


def topics_of(state: State, key: Key) -> Iterator[str]:
    """What a record that moved concerns."""
    kind, id = key
    match kind:
        case "experiments":
            yield from ("experiments", f"experiment.{id}")
        case "trials" if id in state.trials:
            yield from (f"trial.{id}", f"experiment.{state.trials[id].experiment_id}")
        case "checkpoints" if id in state.checkpoints:
            one = state.checkpoints[id]
            yield from (f"trial.{one.trial_id}", f"experiment.{one.experiment_id}")
        case "allocations" if id in state.allocations:
            yield from ("cluster", "queue", f"task.{state.allocations[id].task_id}")
        case "workers" | "away":
            yield "cluster"
        case "tasks" | "models" | "users" | "templates":
            yield str(kind)
        case "versions":
            yield "models"
        case "workspaces" | "projects":
            yield "workspaces"


class Reader:
    """One page: what it looks at, and what of that has changed."""

    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        self._changed: set[str] = set()
        self._moved = asyncio.Event()

    def note(self, topics: Iterable[str]) -> None:
        """Something changed."""
        found = self.topics.intersection(topics)
        if found:
            self._changed |= found
            self._moved.set()

    async def next(self) -> list[str]:
        """What has changed since the last time; nothing after a while without a change."""
        try:
            async with asyncio.timeout(PING_S):
                await self._moved.wait()
        except TimeoutError:
            return []
        await asyncio.sleep(EVERY_S)
        self._moved.clear()
        found, self._changed = sorted(self._changed), set()
        return found


class Live:
    """All pages that are open at this gateway."""

    def __init__(self, catalogue: Catalogue, journal: Log) -> None:
        self._catalogue = catalogue
        self._journal = journal
        self._readers: set[Reader] = set()
        self._reports: asyncio.Task[None] | None = None

    def readings(self) -> Iterable[Reading]:
        """For operators."""
        yield Reading("live_readers", "Pages that are told what changes", (), {(): len(self._readers)})

    def note(self, keys: Iterable[Key]) -> None:
        """Records were folded."""
        if self._readers:
            state = self._catalogue.state
            self._tell({topic for key in keys for topic in topics_of(state, key)})

    def _tell(self, topics: set[str]) -> None:
        for reader in self._readers:
            reader.note(topics)

    async def events(self, topics: Iterable[str]) -> AsyncIterator[bytes]:
        """Server-sent events for one page, until it goes away; the first says that all may have changed."""
        reader = Reader(topics)
        self._readers.add(reader)
        self._follow_reports()
        try:
            yield self._event(sorted(reader.topics))
            while True:
                changed = await reader.next()
                yield self._event(changed) if changed else b": still here\n\n"
        finally:
            self._readers.discard(reader)
            self._follow_reports()

    def _event(self, changed: list[str]) -> bytes:
        data = msgspec.json.encode({"topics": changed})
        return b"id: %d\nevent: changed\ndata: %s\n\n" % (self._catalogue.position, data)

    def _follow_reports(self) -> None:
        """Reports are read only while a page looks at curves."""
        wanted = any(topic.endswith(SERIES) for reader in self._readers for topic in reader.topics)
        if wanted and self._reports is None:
            self._reports = asyncio.create_task(self._read_reports())
        elif not wanted and self._reports is not None:
            self._reports.cancel()
            self._reports = None

    async def _read_reports(self) -> None:
        while True:
            with contextlib.suppress(*AWAY, Broken):
                _, last = await self._journal.bounds(subjects.REPORTS)
                async with self._journal.read(subjects.REPORTS, after=last) as feed:
                    while True:
                        batch = await feed.batch()
                        self._reported({message.subject for message in batch.messages})
            await asyncio.sleep(RETRY_S)

    def _reported(self, where: set[str]) -> None:
        topics: set[str] = set()
        for subject in where:
            id = subject.split(".")[1]
            trial = self._catalogue.state.trials.get(int(id)) if id.isdecimal() else None
            if trial is not None:
                topics |= {f"trial.{trial.id}{SERIES}", f"experiment.{trial.experiment_id}{SERIES}"}
        if topics:
            self._tell(topics)
            asyncio.get_running_loop().call_later(AGAIN_S, self._tell, topics)
