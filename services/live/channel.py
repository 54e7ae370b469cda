"""The pages open at this gateway, and the changes each has not been told of yet."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable

import msgspec

from det_contracts.problems import Refused
from services.catalogue.catalogue import Catalogue
from services.kit.awaitable_position import AwaitablePosition
from services.kit.log import Log
from services.kit.process_metrics import Reading
from services.kit.rules import Key
from services.live.series import Curves
from services.live.topics import SERIES, topics_of
from services.live.turns import Turns
from services.web import errors

EVERY_S = 0.1
EVENTS_PER_S = 2000
"""Total rate for all pages: if many are open, each is notified less often."""
PING_S = 15.0
RECHECK_S = 300.0
"""Interval in seconds at which the user of a page must still have permission."""
MAX_TOPICS = 200
"""Maximum number of topics per page."""
MAX_REMEMBERED = 5000
"""Number of folded batches whose topics are kept for reconnecting pages."""
MAX_PAST_TOPICS = 100_000
"""The same of their topics: a batch that follows an outage may change thousands of trials."""


class PageReader:
    """One page: what it looks at, and which of that has changed. Its size is bounded by its topics."""

    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        self._changed: set[str] = set()
        self._has_changes = asyncio.Event()

    def mark_changed(self, topic: str) -> None:
        """Record that a topic of the page has changed."""
        self._changed.add(topic)
        self._has_changes.set()

    async def wait(self, within_s: float, every_s: float = EVERY_S) -> None:
        """Wait up to `within_s` seconds for a change, and then `every_s` for further ones."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._has_changes.wait()
            await asyncio.sleep(every_s)

    def pop_changed(self) -> list[str]:
        """Return and clear the changed topics."""
        self._has_changes.clear()
        changed, self._changed = sorted(self._changed), set()
        return changed


class Live:
    """All pages open at this gateway."""

    def __init__(self, catalogue: Catalogue, journal: Log, folded_position: AwaitablePosition) -> None:
        """`folded_position` is that of the saver which calls `notify_changes` and `notify_reload`."""
        self._catalogue = catalogue
        self._folded_position = folded_position
        self._readers: defaultdict[str, dict[PageReader, None]] = defaultdict(dict)
        """Per topic."""
        self._turns = Turns()
        self._open_pages = 0
        self._curves = Curves(journal, lambda: catalogue.state, self._notify, self._notify_series)
        self._past: deque[tuple[int, frozenset[str]]] = deque()
        self._past_topics = 0
        """Number of topics in `_past`."""
        self._past_starts_after = catalogue.position
        """Everything behind this position is in `_past`."""

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings."""
        yield Reading("live_readers", "Open pages that receive live updates", (), {(): self._open_pages})

    def start_recording(self) -> None:
        """Start recording folded batches."""
        self._past_starts_after = self._catalogue.position

    def notify_changes(self, keys: Iterable[Key]) -> None:
        """Notify the pages that records with these keys were folded."""
        state = self._catalogue.state
        topics = dict.fromkeys(topic for key in keys for topic in topics_of(state, key))
        if topics:
            self._remember(frozenset(topics))
            self._notify(topics)

    def notify_reload(self) -> None:
        """Notify all pages of everything: what changed before the state was loaded anew is not known."""
        self._past.clear()
        self._past_topics = 0
        self._past_starts_after = self._folded_position.position
        self._notify(list(self._readers))

    def _remember(self, topics: frozenset[str]) -> None:
        # Not that of the catalogue, which still is the former one while a state is loaded again.
        self._past.append((self._folded_position.position, topics))
        self._past_topics += len(topics)
        while len(self._past) > MAX_REMEMBERED or self._past_topics > MAX_PAST_TOPICS:
            self._past_starts_after, forgotten = self._past.popleft()
            self._past_topics -= len(forgotten)

    def _notify(self, topics: Iterable[str]) -> None:
        for topic in topics:
            for reader in self._readers.get(topic, ()):
                reader.mark_changed(topic)

    def _notify_series(self) -> None:
        self._notify([topic for topic in self._readers if topic.endswith(SERIES)])

    async def events(
        self, topics: Iterable[str], *, after: int | None = None, recheck: Callable[[], object] = lambda: None
    ) -> AsyncIterator[bytes]:
        """Yield server-sent events for one page, until it disconnects or `recheck` raises `Refused`.

        The first event names what has changed since position `after` of CONTROL, as reported by any gateway;
        if that is unknown, it names all topics.
        """
        reader = PageReader(topics)
        self._add(reader)
        try:
            if any(topic.endswith(SERIES) for topic in reader.topics):
                await self._curves.wait_until_reading()
            yield self._event(await self._missed_topics(reader, after))
            async for event in self._change_events(reader, recheck):
                yield event
        except Refused as refusal:
            yield b"event: ended\ndata: %s\n\n" % msgspec.json.encode(errors.line(refusal.problem))
        finally:
            self._remove(reader)

    async def _change_events(self, reader: PageReader, recheck: Callable[[], object]) -> AsyncIterator[bytes]:
        checked = time.monotonic()
        while True:
            await reader.wait(PING_S, max(EVERY_S, self._open_pages / EVENTS_PER_S))
            await self._turns.take()
            # No await before the event is built: its id promises that everything up to there was reported.
            changed = reader.pop_changed()
            if time.monotonic() - checked >= RECHECK_S:
                recheck()
                checked = time.monotonic()
            yield self._event(changed) if changed else b": still here\n\n"

    async def _missed_topics(self, reader: PageReader, after: int | None) -> list[str]:
        """Return the topics that a reconnecting page must request again."""
        if after is None:
            return sorted(reader.topics)
        try:
            # The page may have heard of a change from another gateway that is not folded here yet.
            await self._catalogue.wait_for_position(after)
        except Refused:
            return sorted(reader.topics)
        if after < self._past_starts_after:
            return sorted(reader.topics)
        # Reports have their own positions, which event ids do not cover.
        missed = {topic for topic in reader.topics if topic.endswith(SERIES)}
        for position, topics in reversed(self._past):
            if position <= after:
                break
            missed |= reader.topics & topics
        # What came while this waited is in `_past` by now, and must not be sent a second time.
        reader.pop_changed()
        return sorted(missed)

    def _event(self, changed: list[str]) -> bytes:
        data = msgspec.json.encode({"topics": changed})
        return b"id: %d\nevent: changed\ndata: %s\n\n" % (self._catalogue.position, data)

    def _add(self, reader: PageReader) -> None:
        self._open_pages += 1
        for topic in sorted(reader.topics):
            self._readers[topic][reader] = None
        self._follow_curves()

    def _remove(self, reader: PageReader) -> None:
        self._open_pages -= 1
        for topic in reader.topics:
            self._readers[topic].pop(reader, None)
            if not self._readers[topic]:
                del self._readers[topic]
        self._follow_curves()

    def _follow_curves(self) -> None:
        """Read reports only while a page shows curves."""
        self._curves.follow(any(topic.endswith(SERIES) for topic in self._readers))
