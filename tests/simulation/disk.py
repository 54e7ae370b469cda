"""The log with its troubles: one store for all, and a line to it for each process.

A line delays, loses answers before or after the message is stored, repeats facts, and can be cut. What a
process has sent may arrive after its death.
"""

import asyncio
from asyncio import get_running_loop
from contextlib import asynccontextmanager
from functools import lru_cache

import msgspec

from det_contracts import subjects as names
from services.kit.lag import Behind
from services.kit.log import Batch, LogTruncated, OutcomeUnknown
from services.kit.log_memory import MemoryLog, matches, stream_of
from tests.simulation.loop import at_once

ACK_TIMEOUT_S = 5.0
PATIENCE_S = 30.0
RETRY_S = 0.5
READ_LIMIT = 60


class Disk(MemoryLog):
    """The broker's side: `watch` sees every message as it is stored."""

    def __init__(self, watch):
        super().__init__()
        self._watch = watch
        self._readers = {stream: [] for stream in names.STREAM_SUBJECTS}
        self._grown_streams = {}
        self.full = False
        """No append is taken, nor answered."""

    def _store(self, draft):
        position = super()._store(draft)
        stored = self._last[draft.subject]
        self._grown_streams[stream_of(draft.subject)] = None
        self._watch(stored)
        return position

    async def _announce(self):
        for stream in self._grown_streams:
            for reader in self._readers[stream]:
                reader.wake()
        self._grown_streams.clear()

    def repeat(self, draft):
        """Store a message that was stored before: its id is forgotten by now."""
        self._store(draft)
        at_once(self._announce())

    @asynccontextmanager
    async def read(self, stream, *, after, subjects=(), line=None):
        end = len(self.streams[stream])
        if after > end:
            raise LogTruncated(f"{stream} ends at position {end}, but {after} was folded already")
        reader = Reader(self.streams[stream], after, tuple(subjects), line)
        self._readers[stream].append(reader)
        try:
            yield reader
        finally:
            self._readers[stream].remove(reader)


class Reader:
    """A read that lags behind as its line does."""

    def __init__(self, kept, after, filters, line):
        self._kept = kept
        self._at = after
        self._filters = filters
        self._line = line
        self._told = False
        self._waiter = None
        self._coming = False
        self.behind = Behind()

    def wake(self):
        """There may be something new."""
        if self._waiter is not None and not self._coming and self._new():
            self._set_out()

    def _set_out(self):
        self._coming = True
        get_running_loop().call_later(self._line.pace() if self._line else 0.0, self._arrive)

    def _arrive(self):
        if self._line is not None and self._line.cut:
            get_running_loop().call_later(1.0, self._arrive)
            return
        self._coming, waiter, self._waiter = False, self._waiter, None
        if not waiter.done():
            waiter.set_result(None)

    def _new(self):
        """Skip what is not wanted; whether there is something that is."""
        kept = self._kept
        if self._filters:
            while self._at < len(kept) and not wanted(self._filters, kept[self._at].subject):
                self._at += 1
        return self._at < len(kept)

    async def batch(self):
        if self._waiter is None or self._waiter.done():
            self._waiter = get_running_loop().create_future()
        if not self._coming and (self._new() or not self._told):
            self._set_out()
        await self._waiter
        found = self._kept[self._at : self._at + READ_LIMIT]
        if self._filters:
            found = [message for message in found if wanted(self._filters, message.subject)]
        self._at = min(self._at + READ_LIMIT, len(self._kept))
        self._told = caught_up = self._at == len(self._kept)
        return Batch(found, caught_up)


@lru_cache(maxsize=100_000)
def wanted(filters, subject):
    """Whether a subject fits one of the filters."""
    return any(matches(one, subject) for one in filters)


class Line:
    """One process's connection to the log: what `services.kit.log.Log` promises, and no more than that."""

    def __init__(self, disk, chance, plan, tell):
        self._disk = disk
        self._chance = chance
        self._plan = plan
        self._tell = tell
        self._lag = plan.lag_s * chance.random()
        self.cut = False

    def heal(self, plan):
        """From now on it is a good line."""
        self.cut = False
        self._plan = plan

    async def append(self, draft):
        deadline = _now() + PATIENCE_S
        while True:
            try:
                return await self._send(self._take_fact, draft)
            except OutcomeUnknown:
                if _now() > deadline:
                    raise
                await asyncio.sleep(RETRY_S)

    async def append_batch(self, drafts, *, fence):
        return await self._send(self._take_batch, (list(drafts), fence))

    def _take_fact(self, draft):
        position = at_once(self._disk.append(draft))
        if self._chance.random() < self._plan.repeats and not draft.id.startswith("registered-"):
            # A registration that comes again after a newer one is still believed: see README, "known".
            again = _renamed(draft, self._chance) if self._chance.random() < 0.3 else draft
            self._tell("repeat", f"{draft.id} comes again")
            get_running_loop().call_later(
                self._chance.expovariate(self._chance.choice((0.2, 5.0))), self._disk.repeat, again
            )
        return position

    def _take_batch(self, sent):
        return at_once(self._disk.append_batch(sent[0], fence=sent[1]))

    async def _send(self, take, message):
        loop = get_running_loop()
        answer = loop.create_future()
        way = loop.call_later(self._transit(), self._arrive, take, message, answer)
        silence = loop.call_later(
            ACK_TIMEOUT_S, _deliver, answer, None, OutcomeUnknown("no answer from the log")
        )
        try:
            return await answer
        except asyncio.CancelledError:
            if self._chance.random() < 0.5:
                way.cancel()
            raise
        finally:
            silence.cancel()

    def _arrive(self, take, message, answer):
        lost = self._chance.random() if self._plan.losses else 1.0
        if self.cut or self._disk.full or lost < self._plan.losses:
            return
        try:
            result, error = take(message), None
        except Exception as failure:
            result, error = None, failure
        if self.cut or lost < 2 * self._plan.losses:
            self._tell("lost answer", getattr(message, "id", "a batch"))
            return
        get_running_loop().call_later(self._transit(), _deliver, answer, result, error)

    def _transit(self):
        return self._lag * self._chance.random()

    @asynccontextmanager
    async def read(self, stream, *, after, subjects=()):
        async with self._disk.read(stream, after=after, subjects=subjects, line=self) as reader:
            yield reader

    def pace(self):
        """How long messages are on their way to who reads, in seconds."""
        delay = self._lag * (1 + self._chance.random())
        if self._plan.stalls and self._chance.random() < self._plan.stalls:
            delay += 5 * self._chance.random()
        return delay

    async def last(self, subject):
        return await self._disk.last(subject)

    async def bounds(self, stream):
        if self.cut:
            await asyncio.sleep(ACK_TIMEOUT_S)
            raise OutcomeUnknown("no answer about the stream")
        return await self._disk.bounds(stream)


def _renamed(draft, chance):
    """The same fact under another id."""
    id = f"{draft.id}-{chance.randrange(10**6)}"
    body = draft.body.replace(b'"id":"%s"' % draft.id.encode(), b'"id":"%s"' % id.encode(), 1)
    return msgspec.structs.replace(draft, id=id, body=body)


def _deliver(answer, result, error):
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(result)


def _now():
    return get_running_loop().time()
