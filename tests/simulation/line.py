"""A process's line to the log: delays, loses answers before or after storing, repeats facts, can be cut.

What a process has sent may arrive after its death.
"""

import asyncio
from asyncio import get_running_loop
from contextlib import asynccontextmanager

import msgspec

from services.kit.log import NotStored, OutcomeUnknown, TooLarge
from tests.simulation.loop import at_once

ACK_TIMEOUT_S = 5.0
PATIENCE_S = 30.0
RETRY_S = 0.5
HEADERS_BYTES = 512


class Line:
    """One process's connection to the log: the guarantees of `services.kit.log.Log`, and no more."""

    def __init__(self, disk, chance, plan, tell, on_closed=None):
        """`on_closed` gets the reason when the broker closes the line, as for a message too large."""
        self._disk = disk
        self._chance = chance
        self._plan = plan
        self._tell = tell
        self._on_closed = on_closed
        self._lag = plan.lag_s * chance.random()
        self.server = chance.choice(disk.servers)
        """The broker at the other end: it forwards to the leader, but serves reads from its own copy."""
        self.cut = False
        self.refused = ""
        """Why the broker rejects everything from this process."""

    def heal(self, plan):
        """Make it a reliable line from now on."""
        self.cut, self.refused = False, ""
        self._plan = plan

    def move(self):
        """Its broker is gone: connect to another one."""
        self.server = self._chance.choice(
            [server for server in self._disk.servers if server is not self.server]
        )

    async def append(self, draft):
        deadline = _now() + PATIENCE_S
        self._check_size(draft)
        while True:
            try:
                return await self._send(self._take_fact, draft)
            except TooLarge:
                raise
            except (OutcomeUnknown, NotStored):
                if _now() > deadline:
                    raise
                await asyncio.sleep(RETRY_S)

    async def append_batch(self, drafts, *, fence):
        for draft in drafts:
            self._check_size(draft)
        return await self._send(self._take_batch, (list(drafts), fence))

    def _check_size(self, draft):
        if (size := size_of(draft)) > self._plan.limits.message:
            raise TooLarge(f"{draft.subject}: {size:,} bytes with headers")

    def _take_fact(self, draft):
        position = at_once(self._disk.append(draft))
        if self._chance.random() < self._plan.repeats:
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
            whole = take != self._take_batch or len(message[0]) == 1
            if not whole and not self._disk.full and self._chance.random() < 0.5:
                self._disk.begin()
            return
        try:
            self._check_taken(message)
            result, error = take(message), None
        except Exception as failure:
            result, error = None, failure
        if self.cut or lost < 2 * self._plan.losses:
            self._tell("lost answer", getattr(message, "id", "a batch"))
            return
        get_running_loop().call_later(self._transit(), _deliver, answer, result, error)

    def _check_taken(self, message):
        """Checks made by the broker itself."""
        drafts = message[0] if isinstance(message, tuple) else [message]
        if self._on_closed is not None:
            largest = max(map(size_of, drafts))
            if largest > self._plan.limits.message:
                self.cut = True
                self._on_closed(f"maximum payload: {largest:,} bytes on {drafts[0].subject}")
        if len(drafts) > self._plan.limits.events + 1:
            raise NotStored(f"a batch of {len(drafts)} messages")
        if self.refused:
            raise NotStored(self.refused)
        if self._disk.leader is None:
            raise OutcomeUnknown("nobody leads the stream")

    def _transit(self):
        return self._lag * self._chance.random()

    @asynccontextmanager
    async def read(self, stream, *, after, subjects=()):
        async with self._disk.read(stream, after=after, subjects=subjects, line=self) as reader:
            yield reader

    def pace(self):
        """Seconds that messages take to the reader."""
        delay = self._lag * (1 + self._chance.random())
        if self._plan.stalls and self._chance.random() < self._plan.stalls:
            delay += 5 * self._chance.random()
        return delay

    async def last(self, subject):
        while self.cut or self._disk.leader is None:
            await asyncio.sleep(RETRY_S)
        return await self._disk.last(subject)

    async def end(self, stream, *, after, subjects=()):
        while self.cut or self._disk.leader is None:
            await asyncio.sleep(RETRY_S)
        return await self._disk.end(stream, after=after, subjects=subjects)

    async def forget(self, stream, through):
        if self.cut or self._disk.leader is None:
            await asyncio.sleep(ACK_TIMEOUT_S if self.cut else RETRY_S)
            raise OutcomeUnknown("no answer about the stream")
        await self._disk.forget(stream, through)

    async def bounds(self, stream):
        if self.cut or self._disk.leader is None:
            await asyncio.sleep(ACK_TIMEOUT_S if self.cut else RETRY_S)
            raise OutcomeUnknown("no answer about the stream")
        return await self._disk.bounds(stream)


def size_of(draft):
    """Bytes of a message with its headers."""
    return len(draft.body) + len(draft.id) + len(draft.trace) + HEADERS_BYTES


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
