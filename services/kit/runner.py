"""Fold, react, append: how every service lives (architecture, section "How a service runs").

A decision takes effect only when it is read back from the log. So the state at a position is a
pure fold of the log up to it, and a restart needs no special path: fold to the end, then react.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import structlog

from det_contracts import codec, subjects
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import Decision
from det_contracts.nesting import is_too_deep
from det_contracts.problems import Refused, invalid, unavailable
from services.kit.lag import Behind
from services.kit.log import Draft, Feed, Fence, FenceLost, Log, LogTruncated, OutcomeUnknown, Stored
from services.kit.measures import Measures
from services.kit.reached import Reached
from services.kit.rules import Call, Key, Rules, every_key
from services.kit.saving import Saver
from services.kit.trail import CURRENT, Trail

if TYPE_CHECKING:
    from services.kit.spans import Span, Tracer

S = TypeVar("S")
PORTION_BYTES = 4 * 1024 * 1024
Read = Callable[[Stored, str], Recorded]
BATCH_LIMIT = 999
"""Events that go into one atomic batch beside its decision record; the broker takes 1,000 messages."""

log = structlog.get_logger()


class Poison(Exception):
    """An event that `evolve` cannot take: the service stops, loudly, rather than guess."""


class Pending:
    """A command that waits for its ruling."""

    def __init__(self, command: Any, call: Call) -> None:
        self.command = command
        self.call = call
        self.answer: asyncio.Future[tuple[int, Any]] = asyncio.get_running_loop().create_future()
        self.sent: dict[str, Any] = {}
        """What was sent for it: the value by batch. Stored or not, where no answer came."""
        self.stored: tuple[int, Any] | None = None
        """Position of its last event, once one of these was read back, and its value."""


class Runner(Generic[S]):
    """Runs one service's rules over the log.

    Several replicas may run; only one whose `leading()` is true decides, and the fence refuses the
    batch of any that has not seen the newest decision, whatever it believes.
    """

    def __init__(
        self,
        rules: Rules[S],
        journal: Log,
        saver: Saver,
        *,
        leading: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
        replica: str | None = None,
        measures: Measures | None = None,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        tracer: Tracer | None = None,
    ) -> None:
        """`new_id` names batches and, where `replica` is not given, the replica."""
        self.rules = rules
        self.state: S = rules.state()
        self.positions: dict[str, int] = dict.fromkeys(rules.streams, 0)
        self.ready = asyncio.Event()
        self._journal = journal
        self._saver = saver
        self._leading = leading
        self._clock = clock
        self._new_id = new_id
        self._replica = replica or new_id()[:8]
        self._measures = measures or Measures(rules.owner)
        self._tracer = tracer
        self._trail = Trail()
        self._fence = 0
        self._appended = 0
        self._caught_up: dict[str, bool] = dict.fromkeys(rules.streams, False)
        self._touched: dict[Key, str] = {}
        self._dirty: set[Key] = set()
        self._commands: deque[Pending] = deque()
        self._recent: deque[Recorded] = deque(maxlen=200)
        self._wake = asyncio.Event()
        self._reached = {stream: Reached() for stream in rules.streams}
        self._feeds: dict[str, Feed] = {}

    def behind(self) -> dict[str, Behind]:
        """By stream, what is known to be there and not folded."""
        return {stream: feed.behind for stream, feed in self._feeds.items()}

    async def run(self) -> None:
        """Load the snapshot, then fold and decide until cancelled. Raises `Poison` or `LogTruncated`."""
        self.state, stored = await self._saver.load()
        self.positions.update({s: p for s, p in stored.items() if s in self.positions})
        for stream, position in self.positions.items():
            self._reached[stream].move(position)
        self._fence = await self._last_decision()
        self._touched = dict.fromkeys(every_key(self.state), "")
        async with contextlib.AsyncExitStack() as stack:
            for stream, filters in self.rules.streams.items():
                reading = self._journal.read(stream, after=self.positions[stream], subjects=filters)
                self._feeds[stream] = await stack.enter_async_context(reading)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._saver.run())
                tasks.create_task(self._decide_for_ever())
                for stream, feed in self._feeds.items():
                    tasks.create_task(self._fold_for_ever(stream, feed))

    async def command(self, command: Any, call: Call, within_s: float | None = None) -> tuple[int, Any]:
        """Rule on a command; returns the position it took effect at and the answer's value.

        Raises `Refused`; nothing was appended then. After `within_s` it is refused as unavailable: what was
        not ruled on by then never will be, what was sent may be stored.
        """
        pending = Pending(command, call)
        self._trail.put(call.id, CURRENT.get())
        self._commands.append(pending)
        self._wake.set()
        try:
            async with asyncio.timeout(within_s):
                return await pending.answer
        except TimeoutError:
            raise unavailable(f"{self.rules.owner} could not decide within {within_s:.0f} s") from None

    async def reach(self, position: int, within_s: float = 10.0, stream: str = subjects.CONTROL) -> None:
        """Wait until a stream is folded up to `position`; raises `Refused` (unavailable) after a while."""
        if stream not in self.positions:
            raise invalid(f"{self.rules.owner} does not read {stream}")
        try:
            async with asyncio.timeout(within_s):
                await self._reached[stream].reach(position)
        except TimeoutError:
            raise unavailable(
                f"{self.rules.owner} is at position {self.positions[stream]} of {stream}, "
                f"not yet at {position}; try again"
            ) from None

    def lead(self) -> None:
        """Tell the runner that leadership may have changed."""
        self._wake.set()

    async def _last_decision(self) -> int:
        last = await self._journal.last(subjects.decision(self.rules.owner))
        # A decision beyond the snapshot has not been folded yet; the fence follows the fold.
        return last.position if last and last.position <= self.positions[subjects.CONTROL] else 0

    async def _fold_for_ever(self, stream: str, feed: Feed) -> None:
        read = self.rules.decode.get(stream, _read_event)
        while True:
            batch = await feed.batch()
            *parts, last = _portions(batch.messages)
            for part in parts:
                await self._fold_portion(stream, read, part, caught_up=False)
            await self._fold_portion(stream, read, last, caught_up=batch.caught_up)

    async def _fold_portion(
        self, stream: str, read: Read, messages: Sequence[Stored], *, caught_up: bool
    ) -> None:
        began = time.perf_counter()
        events = [read(message, stream) for message in messages]
        for event in events:
            self._fold(event)
        if events:
            self.positions[stream] = events[-1].position
            self._measures.folded(stream, events, time.perf_counter() - began)
            if self._tracer is not None:
                self._trail.note(messages, events)
        self._caught_up[stream] = caught_up
        await self._saver.changed(self.state, self._dirty, events, dict(self.positions))
        self._dirty = set()
        if all(self._caught_up.values()):
            self.ready.set()
        if self._caught_up[subjects.CONTROL]:
            self._wake.set()
        self._reached[stream].move(self.positions[stream])
        await asyncio.sleep(0)

    def _fold(self, recorded: Recorded) -> None:
        event = recorded.event
        if type(event) is Decision:
            if event.owner == self.rules.owner:
                self._fence = recorded.position
                # One that was given up may have been on its way all the time: any of them counts.
                if self._commands and recorded.id in (sent := self._commands[0].sent):
                    self._commands[0].stored = (recorded.position + event.count, sent[recorded.id])
            return
        if type(event) is Unknown:
            self._measures.skipped(event.name)
            return
        self._recent.append(recorded)
        try:
            keys = tuple(self.rules.evolve(self.state, recorded))
        except Exception as error:
            raise Poison(self._story(recorded)) from error
        for key in keys:
            self._touched[key] = recorded.id
            self._dirty.add(key)

    def _story(self, bad: Recorded) -> str:
        names = {getattr(bad.event, f) for f in _id_fields(bad.event)}
        past = [r for r in self._recent if names & {getattr(r.event, f) for f in _id_fields(r.event)}]
        lines = [f"  {r.position} {r.actor}: {r.event}" for r in past[-20:]]
        head = f"{self.rules.owner} cannot fold message {bad.position} of {bad.stream}; its story:"
        return "\n".join([head, *lines])

    async def _decide_for_ever(self) -> None:
        while True:
            due = self.rules.due(self.state) if self._may_decide() else None
            wait = None if due is None else max(due - self._clock(), 0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)
            self._wake.clear()
            while self._may_decide() and await self._decide():
                pass

    def _may_decide(self) -> bool:
        return (
            self._leading()
            and self.positions[subjects.CONTROL] >= self._appended
            and self._caught_up[subjects.CONTROL]
        )

    async def _decide(self) -> bool:
        """Make one round of decisions; returns whether to go on at once."""
        if self._commands:
            return await self._rule(self._commands[0])
        decided = self._expired() or self._reactions()
        if decided:
            await self._append(decided, actor=self.rules.owner, batch=self._new_id())
        return False

    def _expired(self) -> list[tuple[Any, str]]:
        now = self._clock()
        due = self.rules.due(self.state)
        events = self.rules.expire(self.state, now) if due is not None and due <= now else ()
        return [(event, "") for event in events[:BATCH_LIMIT]]

    def _reactions(self) -> list[tuple[Any, str]]:
        """Events with the id of what caused each; a record at rest is not asked again until it moves."""
        decided: list[tuple[Any, str]] = []
        for key, cause in list(self._touched.items()):
            events = self.rules.react(self.state, key)
            if not events:
                del self._touched[key]
            decided += [(event, cause) for event in events]
            if len(decided) >= BATCH_LIMIT:
                break
        return decided[:BATCH_LIMIT]

    async def _rule(self, pending: Pending) -> bool:
        if pending.stored is not None:
            return self._answer(pending, *pending.stored)
        if pending.answer.done():
            # Its asker was told that nobody answered: done now, it would undo what was asked for since.
            self._commands.popleft()
            return True
        try:
            ruling = self.rules.commands[type(pending.command)](self.state, pending.command, pending.call)
        except Refused as refusal:
            self._commands.popleft()
            pending.answer.set_exception(refusal)
            return True
        position = self.positions[subjects.CONTROL]
        if ruling.events:
            batch = self._new_id()
            pending.sent[batch] = ruling.value
            caused = [(event, pending.call.id) for event in ruling.events]
            actor = f"user:{getattr(pending.command, 'user', '')}"
            if not await self._append(caused, actor=actor, batch=batch):
                return False
            position = self._appended
        return self._answer(pending, position, ruling.value)

    def _answer(self, pending: Pending, position: int, value: Any) -> bool:
        self._commands.popleft()
        if not pending.answer.done():
            pending.answer.set_result((position, value))
        return True

    async def _append(self, events: Sequence[tuple[Any, str]], *, actor: str, batch: str) -> bool:
        now = self._clock()
        owner = self.rules.owner
        record = Decision(owner, self.positions[subjects.CONTROL], len(events), self._replica)
        drafts = [Draft(subjects.decision(owner), codec.encode(record, id=batch, actor=owner, at=now), batch)]
        spans = [self._span(event, cause) for event, cause in events]
        for index, ((event, cause), span) in enumerate(zip(events, spans, strict=True)):
            id = f"{batch}-{index}"
            body = codec.encode(event, id=id, actor=actor, at=now, cause=cause)
            drafts.append(Draft(codec.subject_of(event), body, id, span.header if span else ""))
        problem = await self._store(drafts)
        for span in filter(None, spans):
            span.end(problem)
        return not problem

    def _span(self, event: Any, cause: str) -> Span | None:
        if self._tracer is None or not (within := self._trail.behind(event, cause)):
            return None
        ids = {name: getattr(event, name) or 0 for name in _id_fields(event)}
        return self._tracer.begin(codec.kind_of(event).name, within, kind="producer", **ids)

    async def _store(self, drafts: Sequence[Draft]) -> str:
        """Append a batch; returns what went wrong, empty for nothing."""
        owner = self.rules.owner
        began = time.perf_counter()
        try:
            fence = Fence(drafts[0].subject, self._fence)
            self._appended = await self._journal.append_batch(drafts, fence=fence)
        except FenceLost:
            # Somebody decided meanwhile; what it was arrives with the next messages, then we look again.
            self._measures.refused()
            await self._wait_for_log()
            return "another replica has decided"
        except OutcomeUnknown as error:
            log.warning("append.unknown", owner=owner, error=str(error))
            await self._wait_for_log()
            return "the log did not answer"
        self._measures.decided(len(drafts) - 1, time.perf_counter() - began)
        return ""

    async def _wait_for_log(self) -> None:
        """Decide again only after everything that is in the log by now was folded."""
        while True:
            try:
                _, last = await self._journal.bounds(subjects.CONTROL)
                break
            except (OutcomeUnknown, TimeoutError, OSError):
                await asyncio.sleep(0.2)
        self._appended = max(self._appended, last)
        self._wake.set()


def _portions(messages: Sequence[Stored]) -> list[Sequence[Stored]]:
    """What is folded without a pause, and kept as records at one time; at least one portion."""
    found, start, size = list[Sequence[Stored]](), 0, 0
    for at, message in enumerate(messages):
        if size and size + len(message.body) > PORTION_BYTES:
            found.append(messages[start:at])
            start, size = at, 0
        size += len(message.body)
    return [*found, messages[start:]]


def _read_event(message: Stored, stream: str) -> Recorded:
    """An event. What a script wrote that is damaged, or speaks of another trial, must not stop a service."""
    witnessed = subjects.is_witnessed(message.subject)
    try:
        if witnessed and is_too_deep(message.body):
            raise codec.BadRecord(f"message {message.position} of {stream} nests too deep")
        recorded = codec.decode(message.body, message.position, stream)
    except codec.BadRecord:
        if not witnessed:
            raise
        return Recorded(message.position, Unknown("damaged", 0), "", "", 0.0, "", stream)
    event = recorded.event
    if type(event) is Unknown or message.subject == _place_of(event):
        return recorded
    return msgspec.structs.replace(recorded, event=Unknown(f"misplaced {type(event).__name__}", 0))


def _place_of(event: Any) -> str:
    return subjects.decision(event.owner) if type(event) is Decision else codec.subject_of(event)


def _id_fields(event: Any) -> list[str]:
    return [f for f in event.__struct_fields__ if f.endswith("_id")]


__all__ = ["LogTruncated", "Pending", "Poison", "Runner"]
