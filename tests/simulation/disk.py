"""The log with its troubles: one store for all, and a line to it for each process.

A line delays, loses answers before or after the message is stored, repeats facts, and can be cut. What a
process has sent may arrive after its death.
"""

import asyncio
from contextlib import asynccontextmanager

import msgspec

from det_contracts import subjects as names
from services.kit.log import Batch, LogTruncated, OutcomeUnknown
from services.kit.log_memory import MemoryLog, matches
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
        # What is appended is told to its readers, each of which is slow in its own way.
        self._grown = self
        self._readers = {stream: [] for stream in names.STREAM_SUBJECTS}
        self.full = False
        """No append is taken, nor answered."""

    def _store(self, draft):
        position = super()._store(draft)
        self._watch(self._last[draft.subject])
        return position

    def tell(self):
        for readers in self._readers.values():
            for reader in readers:
                reader.wake()

    def repeat(self, draft):
        """Store a message that was stored before: its id is forgotten by now."""
        self._store(draft)
        self.tell()

    @asynccontextmanager
    async def read(self, stream, *, after, subjects=(), pace=None):
        end = len(self.streams[stream])
        if after > end:
            raise LogTruncated(f"{stream} ends at position {end}, but {after} was folded already")
        reader = Reader(self.streams[stream], after, subjects, pace)
        self._readers[stream].append(reader)
        try:
            yield reader
        finally:
            self._readers[stream].remove(reader)


class Reader:
    """A read that lags behind."""

    def __init__(self, kept, after, filters, pace):
        self._kept = kept
        self._at = after
        self._filters = filters
        self._pace = pace
        self._told = False
        self._waiter = None

    def wake(self):
        if self._waiter is not None and not self._waiter.done() and self._new():
            self._waiter.set_result(None)

    def _wanted(self, message):
        return not self._filters or any(matches(f, message.subject) for f in self._filters)

    def _new(self):
        """Skip what is not wanted; whether there is something that is."""
        while self._at < len(self._kept) and not self._wanted(self._kept[self._at]):
            self._at += 1
        return self._at < len(self._kept)

    async def batch(self):
        while not self._new() and self._told:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        found = [m for m in self._kept[self._at : self._at + READ_LIMIT] if self._wanted(m)]
        self._at = min(self._at + READ_LIMIT, len(self._kept))
        self._told = caught_up = self._at == len(self._kept)
        if self._pace is not None:
            await self._pace()
        return Batch(found, caught_up)


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
            _loop().call_later(
                self._chance.expovariate(self._chance.choice((0.2, 5.0))), self._disk.repeat, again
            )
        return position

    def _take_batch(self, sent):
        return at_once(self._disk.append_batch(sent[0], fence=sent[1]))

    async def _send(self, take, message):
        answer = _loop().create_future()
        way = _loop().call_later(self._transit(), self._arrive, take, message, answer)
        try:
            async with asyncio.timeout(ACK_TIMEOUT_S):
                return await answer
        except TimeoutError:
            raise OutcomeUnknown("no answer from the log") from None
        except asyncio.CancelledError:
            if self._chance.random() < 0.5:
                way.cancel()
            raise

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
        _loop().call_later(self._transit(), _deliver, answer, result, error)

    def _transit(self):
        return self._lag * self._chance.random()

    @asynccontextmanager
    async def read(self, stream, *, after, subjects=()):
        async with self._disk.read(stream, after=after, subjects=subjects, pace=self._pace) as reader:
            yield reader

    async def _pace(self):
        delay = self._lag * (1 + self._chance.random())
        if self._chance.random() < self._plan.stalls:
            delay += 5 * self._chance.random()
        await asyncio.sleep(delay)
        while self.cut:
            await asyncio.sleep(1.0)

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


def _loop():
    return asyncio.get_running_loop()


def _now():
    return asyncio.get_running_loop().time()
