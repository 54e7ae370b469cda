"""The fold-react-append loop that drives every service (ARCHITECTURE.md, "How a service works").

A decision takes effect only once it has been read back from the log. The state at a position is therefore a
pure fold of the log up to that position, and a restart needs no special path: fold to the end, then react.
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
import sqlalchemy as sa
import structlog

from det_contracts import bounds, subjects
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import Decision
from det_contracts.events.gateway import LoggingSet
from det_contracts.problems import Refused, unavailable
from services.kit.awaitable_position import AwaitablePosition
from services.kit.cancellation import raise_if_cancelled
from services.kit.command_queue import Pending
from services.kit.database import UnreadableRecord
from services.kit.decider import Decider
from services.kit.inbox import Inbox
from services.kit.lag import Lag
from services.kit.log import Feed, Log, Stored
from services.kit.narrowing import Narrowing, PortionFailed
from services.kit.pager import Pager
from services.kit.portions import Portion, portions_of, size_of
from services.kit.process import flatten_errors
from services.kit.process_metrics import Measures
from services.kit.records import Reader, describe_history
from services.kit.roots import PageFault
from services.kit.rules import Call, Key, Rules
from services.kit.saver import Saver
from services.kit.service_events import KINDS, ServiceEvents
from services.kit.snapshot_store import DatabaseSaver
from services.kit.standstill import Failed, Poison, Standstill, end_of
from services.kit.stream_positions import StreamPositions

if TYPE_CHECKING:
    from services.kit.spans import Tracer

S = TypeVar("S")

log = structlog.get_logger()


class Runner(Generic[S]):
    """Runs one service's rules over the log.

    Several replicas may run. Only the one whose `is_leader()` is true decides (`services.kit.decider`).
    """

    def __init__(
        self,
        rules: Rules[S],
        journal: Log,
        saver: Saver,
        *,
        is_leader: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
        replica: str | None = None,
        measures: Measures | None = None,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        tracer: Tracer | None = None,
        stopwatch: Callable[[], float] = time.perf_counter,
        apply_logging: Callable[[LoggingSet], None] = lambda _: None,
    ) -> None:
        """Create a runner; nothing happens until `run`.

        `apply_logging` is called when administrators change how this process prints its log.
        `stopwatch` measures how long a round took. It decides how much goes into one, never what.
        """
        self.rules = rules
        self.state: S = rules.state()
        self.positions: dict[str, int] = dict.fromkeys(rules.streams, 0)
        self.ready = asyncio.Event()
        self._journal = journal
        self._saver = saver
        self._measures = measures or Measures(rules.owner)
        self._is_traced = tracer is not None
        self._caught_up: dict[str, bool] = dict.fromkeys(rules.streams, False)
        self._dirty: dict[Key, str] = {}
        """Keys of records that the current portion changed, in log order, with the event that did so last."""
        self._recent: deque[Recorded] = deque(maxlen=200)
        self._inbox = Inbox(journal, clock)
        self.standstill = Standstill(rules.owner, journal)
        self.decider = Decider(
            rules,
            journal,
            self._inbox,
            self.standstill,
            is_leader=is_leader,
            clock=clock,
            new_id=new_id,
            replica=replica or new_id()[:8],
            measures=self._measures,
            stopwatch=stopwatch,
            tracer=tracer,
        )
        self._about_services = ServiceEvents(rules, self.decider, saver, self.standstill, apply_logging)
        self._narrowing = Narrowing()
        self.stream_positions = StreamPositions(
            rules.owner, rules.streams, self._inbox.admitted, self.standstill
        )
        self._changes = AwaitablePosition()
        """How often something was folded, or leadership may have changed."""
        self._listeners: list[Callable[[Sequence[Recorded]], None]] = []
        self._feeds: dict[str, Feed] = {}
        self.pager: Pager[S] | None = None
        """Set if the rules define which records belong together."""
        if isinstance(saver, DatabaseSaver) and saver.roots is not None:
            self.pager = Pager(
                rules,
                saver,
                saver.roots,
                on_fault=self._on_fault,
                calls_for_decision=self.decider.calls_for_decision,
            )
        self._faults: deque[PageFault] = deque(maxlen=1)
        """The fault that requires the state to be reloaded."""
        self._faulted = asyncio.Event()

    def add_listener(self, listener: Callable[[Sequence[Recorded]], None]) -> None:
        """Have `listener` called with the events of each portion once they are folded."""
        self._listeners.append(listener)

    def lag(self) -> dict[str, Lag]:
        """Per stream that may be read, the messages known to exist but not yet folded."""
        feeds = self._feeds.items()
        return {stream: feed.lag for stream, feed in feeds if not self.rules.is_held(stream, self.state)}

    async def run(self) -> None:
        """Load the snapshot, then fold and decide until cancelled. Raises `LogTruncated`.

        An event that cannot be folded does not end it; see `services.kit.standstill`.
        """
        while True:
            why: Refused
            try:
                await self._run_once()
            except* PageFault:
                why = self._faults[-1]
                log.warning("state.loaded_anew", owner=self.rules.owner, reason=str(why))
            except* Poison as group:
                (poison, *_) = flatten_errors(group)
                assert isinstance(poison, Poison)  # noqa: S101 - for the type checker
                log.critical("event.failed", at=poison.failed.location, exc_info=poison)
                await self.standstill.record_failure(poison.failed)
                why = poison.failed.refusal(self.rules.owner)
            except* PortionFailed as group:
                (error, *_) = flatten_errors(group)
                # The attempts that narrow it down fail in the same way.
                shown = None if self._narrowing.limit else error
                log.critical("portion.failed", owner=self.rules.owner, error=str(error), exc_info=shown)
                failed = self._narrowing.on_failure(str(error), self.positions)
                why = unavailable(f"{self.rules.owner} looks for the event that it cannot process: {error}")
                if failed is not None:
                    await self.standstill.record_failure(failed)
                    why = failed.refusal(self.rules.owner)
            self.decider.fail_commands(why)

    async def _run_once(self) -> None:
        await self._load_state()
        async with contextlib.AsyncExitStack() as stack:
            for stream, filters in self.rules.streams.items():
                reading = self._journal.read(stream, after=self.positions[stream], subjects=filters)
                self._feeds[stream] = await stack.enter_async_context(reading)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._saver.run())
                tasks.create_task(self.decider.run())
                tasks.create_task(self._raise_on_fault())
                for stream, feed in self._feeds.items():
                    tasks.create_task(self._fold_forever(stream, feed))

    async def _load_state(self) -> None:
        self.state, stored = await self._saver.load()
        self._faulted.clear()
        self.positions = {stream: stored.get(stream, 0) for stream in self.rules.streams}
        self._caught_up = dict.fromkeys(self.rules.streams, False)
        self.decider.caught_up = False
        self._dirty = {}
        self._recent.clear()
        if self.pager is not None:
            self.pager.attach(self.state, self.positions)
        self.stream_positions.begin(self.positions)
        if not any(self.positions.values()):
            # What is folded from the beginning serves all requests for that.
            self._saver.rebuilds.mark_served(await end_of(self._journal))
        await self._inbox.restore_position(self.positions[subjects.CONTROL])
        await self.standstill.load_skipped()
        await self.decider.attach(self.state, self.positions)

    def _on_fault(self, fault: PageFault) -> None:
        self._faults.append(fault)
        self._faulted.set()

    async def _raise_on_fault(self) -> None:
        """Raise the page fault that a read-only caller ran into."""
        await self._faulted.wait()
        raise self._faults[-1]

    async def answer(self, query: Any) -> Any:
        """Answer a query from the folded state. Raises `Refused`."""
        if self._faulted.is_set():
            # An event may be only half folded.
            raise self._faults[-1]
        if self.pager is not None:
            await self.pager.load_for([query])
        return self.rules.answers[type(query)](self.state, query)

    async def command(self, command: Any, call: Call, within_s: float | None = None) -> tuple[int, Any]:
        """Decide a command and return the position at which it took effect and the answer's value.

        Raises `Refused`, in which case the command has no effect. After `within_s` seconds it is refused as
        unavailable: a command not decided by then never will be, but one already sent may still be stored.
        """
        bounds.check(command)
        if (failed := self.standstill.failed) is not None:
            raise failed.refusal(self.rules.owner)
        pending = Pending(command, call)
        try:
            async with asyncio.timeout(within_s):
                if self.pager is not None:
                    await self.pager.load_for([command])
                self.decider.put(pending)
                return await pending.answer
        except TimeoutError:
            raise unavailable(f"{self.rules.owner} could not decide within {within_s:.0f} s") from None

    async def wait_for_position(
        self, position: int, within_s: float = 10.0, stream: str = subjects.CONTROL
    ) -> None:
        """Wait until a stream is folded up to `position`.

        Raises `Refused` (unavailable) after `within_s` seconds. For WITNESS, this waits until every statement
        up to `position` has been either refused, or admitted and folded.
        """
        await self.stream_positions.wait_for_position(position, within_s, stream)

    def on_leadership_change(self) -> None:
        """Tell the runner that leadership may have changed."""
        self.decider.wake()
        self._changes.advance(self._changes.position + 1)

    async def wait_for_change(self, after: int) -> int:
        """Wait until the news counter exceeds `after`: events were folded, or leadership may have changed.

        Returns its new value, to pass in the next call. Start with 0, which may return at once."""
        await self._changes.wait_for_position(after + 1)
        return self._changes.position

    async def _fold_forever(self, stream: str, feed: Feed) -> None:
        read = self.rules.reader(stream, KINDS, lambda: self.state)
        this_task = asyncio.current_task()
        while True:
            raise_if_cancelled(this_task)
            while self.rules.is_held(stream, self.state):
                await self.wait_for_change(self._changes.position)
            batch = await feed.batch()
            *parts, last = portions_of(
                batch.messages, self.standstill.stop_position(stream), self._narrowing.limit
            )
            for part in parts:
                await self._fold_portion(stream, read, part, caught_up=False)
            await self._fold_portion(stream, read, last, caught_up=batch.caught_up)

    async def _fold_portion(
        self, stream: str, read: Reader, messages: Sequence[Stored], *, caught_up: bool
    ) -> None:
        if self.standstill.stands_before(stream, messages):
            await self.standstill.wait_for_decision(stream, messages)
            self._narrowing.end()
        began = time.perf_counter()
        portion = self.standstill.read(read, messages, stream)
        try:
            await self._prepare(stream, portion)
            await self._process(stream, portion, began, caught_up=caught_up)
        except (Poison, PageFault, UnreadableRecord, msgspec.ValidationError, sa.exc.SQLAlchemyError):
            raise
        except Exception as error:
            self._narrowing.note(stream, messages)
            raise PortionFailed(f"it cannot be processed: {error!r}") from error

    async def _prepare(self, stream: str, portion: Portion) -> None:
        """Load what the events of a portion name. From here to the last of them nothing else is done."""
        while True:
            if self.pager is not None and (missing := self.pager.missing(r.event for r in portion.events)):
                await self.pager.fetch(missing)
            if not self._narrowing.limit or not portion.messages:
                return
            if not await self._saver.save_all():
                break
        self._narrowing.note(stream, portion.messages)
        self._narrowing.on_progress(self.positions)

    async def _process(self, stream: str, portion: Portion, began: float, *, caught_up: bool) -> None:
        decider, (messages, decoded, events, passed_over) = self.decider, portion
        for message, event in zip(decoded, events, strict=True):
            if message.subject == decider.fence_subject:
                # The content does not matter: the broker compares positions.
                decider.fence_position = message.position
            self._fold(message, event)
        decider.record_changes(self._dirty)
        if messages:
            self.positions[stream] = messages[-1].position
            self._measures.folded(stream, messages, events, time.perf_counter() - began)
            if self._is_traced:
                decider.event_spans.record_events(decoded, events)
        self._caught_up[stream] = caught_up
        decider.caught_up = self._caught_up[subjects.CONTROL]
        for listener in self._listeners:
            listener(events)
        await self._saver.changed(self.state, self._dirty, events, dict(self.positions), size_of(decoded))
        self._dirty = {}
        # A slow broker may claim too early that the stream has no more messages.
        if not self.ready.is_set() and all(self._caught_up.values()) and decider.has_folded_own:
            self.ready.set()
        if decider.caught_up:
            decider.wake()
        self.stream_positions.advance(stream, self.positions[stream])
        if messages:
            self._changes.advance(self._changes.position + 1)
        self._inbox.on_folded(events, passed_over)
        if self.pager is not None:
            self.pager.evict_idle(decider.unreacted, decider.parked)
        await asyncio.sleep(0)

    def _fold(self, message: Stored, recorded: Recorded) -> None:
        event = recorded.event
        if type(event) in KINDS:
            self._about_services.heed(recorded, self.positions)
        if type(event) is Decision:
            return
        if type(event) is Unknown:
            self._measures.skipped(event.name)
            if event.version == 0:
                log.warning("log.unreadable", what=event.name, position=message.position, on=message.subject)
            return
        self._recent.append(recorded)
        try:
            keys = dict.fromkeys(self.rules.evolve(self.state, recorded), recorded.id)
        except PageFault:
            raise
        except Exception as error:
            failed = Failed(recorded.stream, recorded.position, message.subject, repr(error))
            history = describe_history(self.rules.owner, recorded, self._recent)
            raise Poison(failed, history) from error
        if self.pager is not None:
            self.pager.load_named(keys)
            self.pager.record_changes(keys)
        self._dirty.update(keys)
