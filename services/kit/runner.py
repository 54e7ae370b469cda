"""The fold-react-append loop that drives every service (ARCHITECTURE.md, "How a service works").

A decision takes effect only once it has been read back from the log. The state at a position is therefore a
pure fold of the log up to that position, and a restart needs no special path: fold to the end, then react.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import sqlalchemy as sa
import structlog

from det_contracts import bounds, codec, subjects
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import Decision
from det_contracts.events.archive import SegmentSealed
from det_contracts.events.gateway import DecisionsRetried, EventSkipped, LoggingSet, RebuildAsked
from det_contracts.problems import Refused, invalid, unavailable
from services.kit.awaitable_position import AwaitablePosition
from services.kit.cancellation import raise_if_cancelled
from services.kit.command_queue import CommandQueue, Pending
from services.kit.database import UnreadableRecord
from services.kit.inbox import Inbox
from services.kit.lag import Lag
from services.kit.log import (
    Draft,
    Feed,
    Fence,
    FenceLost,
    Log,
    LogTruncated,
    NotStored,
    OutcomeUnknown,
    Stored,
)
from services.kit.narrowing import Narrowing, PortionFailed
from services.kit.pager import Pager
from services.kit.portions import portions_of
from services.kit.process import flatten_errors
from services.kit.process_metrics import Measures
from services.kit.records import read_event
from services.kit.roots import PageFault
from services.kit.rounds import EMPTY_ROUND, Decided, Outcome, Round, Rounds
from services.kit.rules import Call, Key, Rules, every_key
from services.kit.snapshot_store import DatabaseSaver, Saver
from services.kit.standstill import Failed, Poison, Standstill, end_of, placeholder_for
from services.kit.timers import ALL
from services.kit.trace_context import CURRENT, EventSpans

if TYPE_CHECKING:
    from services.kit.spans import Span, Tracer

S = TypeVar("S")
Decode = Callable[[Stored, str], Recorded]
MAX_PARKED_LISTED = 20
"""Maximum number of parked records reported at once."""
_TIMERS = 1
"""Index of the due-time round among the kinds of rounds."""
REFUSED_RETRY_S = 0.5
"""Pause in seconds before deciding again after the log refused to store a batch."""

log = structlog.get_logger()


class Runner(Generic[S]):
    """Runs one service's rules over the log.

    Several replicas may run. Only the one whose `is_leader()` is true decides. The fence rejects a batch from
    any replica that has not seen the newest decision, even if it still believes it leads.
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

        `apply_logging` hears how the log of this process is to be printed.
        `stopwatch` says how long a round was worked on; it decides how much goes into one, never what.
        """
        self.rules = rules
        self.state: S = rules.state()
        self.positions: dict[str, int] = dict.fromkeys(rules.streams, 0)
        self.ready = asyncio.Event()
        self._journal = journal
        self._saver = saver
        self._is_leader = is_leader
        self._apply_logging = apply_logging
        self._clock = clock
        self._new_id = new_id
        self._replica = replica or new_id()[:8]
        self._measures = measures or Measures(rules.owner)
        self._tracer = tracer
        self._event_spans = EventSpans()
        self._fence_position = 0
        self._fence_subject = subjects.decision(rules.owner)
        self._archived_through = 0
        """Position up to which the log is archived. Decisions at or below it may be removed from the
        broker."""
        self._last_appended = 0
        self._caught_up: dict[str, bool] = dict.fromkeys(rules.streams, False)
        self._unreacted: dict[Key, str] = {}
        self._dirty: dict[Key, None] = {}
        """Keys of folded records that are not yet saved, in log order."""
        self._is_deciding, self._rounds_done = False, 0
        self._rounds = Rounds(rules, new_id=new_id, on_parked=self._park, stopwatch=stopwatch)
        self._commands = CommandQueue()
        self._unconfirmed: dict[str, tuple[Outcome, ...]] = {}
        """Batches whose storage was neither confirmed nor denied, by batch id, with the outcomes to report if
        stored."""
        self._turn = 0
        self._was_leader = False
        self.parked: dict[Key, str] = {}
        """Records that cannot be decided on until they change, each with the reason."""
        self.refusal = ""
        """Why the log currently refuses this service's decisions; empty if it accepts them."""
        self._recent: deque[Recorded] = deque(maxlen=200)
        self._wake = asyncio.Event()
        self._inbox = Inbox(journal, clock)
        self.standstill = Standstill(rules.owner, journal)
        self._narrowing = Narrowing()
        self._stream_positions = {stream: AwaitablePosition() for stream in rules.streams} | {
            subjects.WITNESS: self._inbox.admitted
        }
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
                calls_for_decision=self._rounds.calls_for_decision,
            )
        self._faults: deque[PageFault] = deque(maxlen=1)
        """The fault that requires the state to be reloaded."""
        self._faulted = asyncio.Event()

    def add_listener(self, listener: Callable[[Sequence[Recorded]], None]) -> None:
        """Have `listener` called with the events of each portion once they are folded."""
        self._listeners.append(listener)

    def lag(self) -> dict[str, Lag]:
        """Per stream, the messages known to exist but not yet folded."""
        return {stream: feed.lag for stream, feed in self._feeds.items()}

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
                why = await self._record_failure(poison.failed)
            except* PortionFailed as group:
                (error, *_) = flatten_errors(group)
                # The attempts that narrow it down fail in the same way.
                shown = None if self._narrowing.limit else error
                log.critical("portion.failed", owner=self.rules.owner, error=str(error), exc_info=shown)
                failed = self._narrowing.on_failure(str(error), self.positions)
                why = unavailable(f"{self.rules.owner} looks for the event that it cannot process: {error}")
                if failed is not None:
                    why = await self._record_failure(failed)
            self._fail_commands(why)

    async def _record_failure(self, failed: Failed) -> Refused:
        await self.standstill.record_failure(failed)
        return failed.refusal(self.rules.owner)

    async def _run_once(self) -> None:
        await self._load_state()
        async with contextlib.AsyncExitStack() as stack:
            for stream, filters in self.rules.streams.items():
                reading = self._journal.read(stream, after=self.positions[stream], subjects=filters)
                self._feeds[stream] = await stack.enter_async_context(reading)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._saver.run())
                tasks.create_task(self._decide_forever())
                tasks.create_task(self._raise_on_fault())
                for stream, feed in self._feeds.items():
                    tasks.create_task(self._fold_forever(stream, feed))

    async def _load_state(self) -> None:
        self.state, stored = await self._saver.load()
        self._faulted.clear()
        self.positions = {stream: stored.get(stream, 0) for stream in self.rules.streams}
        self._caught_up = dict.fromkeys(self.rules.streams, False)
        self._dirty, self.parked = {}, {}
        self._rounds.timers.parked.clear()
        self._recent.clear()
        if self.pager is not None:
            self.pager.attach(self.state, self.positions)
        for stream, position in self.positions.items():
            self._stream_positions[stream].begin(position)
        if not any(self.positions.values()):
            # What is folded from the beginning serves all requests for that.
            self._saver.rebuilds.mark_served(await end_of(self._journal))
        self._fence_position = await self._newest_folded_decision()
        await self._inbox.restore_position(self.positions[subjects.CONTROL])
        await self.standstill.load_skipped()
        await self._hold_until_folded()
        self._unreacted = dict.fromkeys(every_key(self.state), "")

    def _on_fault(self, fault: PageFault) -> None:
        self._faults.append(fault)
        self._faulted.set()

    async def _raise_on_fault(self) -> None:
        """Raise the page fault that a read-only caller ran into."""
        await self._faulted.wait()
        raise self._faults[-1]

    def _fail_commands(self, why: Refused) -> None:
        """Fail all pending commands.

        As after a crash, those already sent may be stored; the others are dropped.
        """
        given_up = [outcome.pending for sent in self._unconfirmed.values() for outcome in sent]
        self._unconfirmed.clear()
        while (pending := self._commands.pop()) is not None:
            given_up.append(pending)
        for pending in given_up:
            pending.fail(why)

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
                self._commands.put(pending)
                self._event_spans.record_span(call.id, CURRENT.get())
                self._wake.set()
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
        if stream not in self._stream_positions:
            raise invalid(f"{self.rules.owner} does not read {stream}")
        failed = self.standstill.failed
        if failed is not None and position > self._stream_positions[stream].position:
            raise failed.refusal(self.rules.owner)
        try:
            async with asyncio.timeout(within_s):
                await self._stream_positions[stream].wait_for_position(position)
        except TimeoutError:
            raise unavailable(
                f"{self.rules.owner} is at position {self._stream_positions[stream].position} of {stream}, "
                f"not yet at {position}; try again"
            ) from None

    def on_leadership_change(self) -> None:
        """Tell the runner that leadership may have changed."""
        self._wake.set()
        self._changes.advance(self._changes.position + 1)

    async def wait_for_change(self, after: int) -> int:
        """Wait until the news counter exceeds `after`: events were folded, or leadership may have changed.

        Returns the new counter value, to pass in the next call. Start with 0, which may return at once.
        """
        await self._changes.wait_for_position(after + 1)
        return self._changes.position

    async def _newest_folded_decision(self) -> int:
        last = await self._journal.last(subjects.decision(self.rules.owner))
        # A decision beyond the snapshot has not been folded yet; the fence follows the fold.
        return last.position if last and last.position <= self.positions[subjects.CONTROL] else 0

    async def _fold_forever(self, stream: str, feed: Feed) -> None:
        read = self.rules.decode.get(stream, read_event)
        while True:
            raise_if_cancelled()
            batch = await feed.batch()
            *parts, last = portions_of(
                batch.messages, self.standstill.stop_position(stream), self._narrowing.limit
            )
            for part in parts:
                await self._fold_portion(stream, read, part, caught_up=False)
            await self._fold_portion(stream, read, last, caught_up=batch.caught_up)

    async def _fold_portion(
        self, stream: str, read: Decode, messages: Sequence[Stored], *, caught_up: bool
    ) -> None:
        if await self.standstill.wait_for_decision(stream, messages):
            self._narrowing.end()
        began = time.perf_counter()
        events = [self._readable(read, message, stream) for message in messages]
        try:
            await self._prepare(stream, messages, events)
            await self._process(stream, messages, events, began, caught_up=caught_up)
        except (Poison, PageFault, UnreadableRecord, msgspec.ValidationError, sa.exc.SQLAlchemyError):
            raise
        except Exception as error:
            self._narrowing.note(stream, messages)
            raise PortionFailed(f"it cannot be processed: {error!r}") from error

    async def _prepare(self, stream: str, messages: Sequence[Stored], events: Sequence[Recorded]) -> None:
        """Load what the events of a portion name. From here to the last of them nothing else is done."""
        while True:
            if self.pager is not None:
                await self.pager.load_for(one.event for one in events)
            if not self._narrowing.limit or not messages:
                return
            if not self._saver.has_unsaved:
                break
            await self._saver.save_all()
        self._narrowing.note(stream, messages)
        self._narrowing.on_progress(self.positions)

    async def _process(
        self,
        stream: str,
        messages: Sequence[Stored],
        events: Sequence[Recorded],
        began: float,
        *,
        caught_up: bool,
    ) -> None:
        for message, event in zip(messages, events, strict=True):
            if message.subject == self._fence_subject:
                # The content does not matter: the broker compares positions.
                self._fence_position = message.position
            self._fold(message, event)
        if events:
            self.positions[stream] = events[-1].position
            self._measures.folded(stream, events, time.perf_counter() - began)
            if self._tracer is not None:
                self._event_spans.record_events(messages, events)
        self._caught_up[stream] = caught_up
        for listener in self._listeners:
            listener(events)
        await self._saver.changed(self.state, self._dirty, events, dict(self.positions))
        self._dirty = {}
        # A slow broker may claim too early that the stream has no more messages.
        if all(self._caught_up.values()) and self.positions[subjects.CONTROL] >= self._last_appended:
            self.ready.set()
        if self._caught_up[subjects.CONTROL]:
            self._wake.set()
        self._stream_positions[stream].advance(self.positions[stream])
        if events:
            self._changes.advance(self._changes.position + 1)
        self._inbox.on_folded(events)
        if self.pager is not None:
            self.pager.evict_idle(self._unreacted, self.parked)
        await asyncio.sleep(0)

    def _readable(self, read: Decode, message: Stored, stream: str) -> Recorded:
        if self.standstill.skips(stream, message.position):
            return placeholder_for(message, stream)
        try:
            return read(message, stream)
        except Exception as error:
            failed = Failed(stream, message.position, message.subject, repr(error))
            raise Poison(failed, f"{self.rules.owner} cannot read message {failed.location}") from error

    def _fold(self, message: Stored, recorded: Recorded) -> None:
        event = recorded.event
        if type(event) is Decision:
            self._read_back(recorded)
            return
        if type(event) is SegmentSealed:
            self._archived_through = max(self._archived_through, event.last)
        if type(event) is DecisionsRetried and event.owner == self.rules.owner:
            self._retry_parked(recorded.id)
        if type(event) is EventSkipped:
            self._on_event_skipped(recorded)
        if type(event) is RebuildAsked and event.owner == self.rules.owner:
            self._saver.rebuilds.request(recorded.position)
        if type(event) is LoggingSet:
            self._apply_logging(event)
        if type(event) is Unknown:
            self._measures.skipped(event.name)
            if event.version == 0:
                log.warning("log.unreadable", what=event.name, position=message.position, on=message.subject)
            return
        self._recent.append(recorded)
        try:
            keys = tuple(self.rules.evolve(self.state, recorded))
        except PageFault:
            raise
        except Exception as error:
            failed = Failed(recorded.stream, recorded.position, message.subject, repr(error))
            raise Poison(failed, self._describe_history(recorded)) from error
        if self.pager is not None:
            self.pager.load_named(keys)
            self.pager.record_changes(keys)
        for key in keys:
            # The record changed, so ask about it again even if it was parked.
            self.parked.pop(key, None)
            self._rounds.timers.release(key)
            self._unreacted[key] = recorded.id
            self._dirty[key] = None

    def _on_event_skipped(self, recorded: Recorded) -> None:
        event: EventSkipped = recorded.event
        if not self.standstill.add_skipped(event, self.positions.get(event.stream, 0)):
            return
        # A replica of another release could fold the event. The log now says that it has no effect.
        location = f"{event.stream} {event.position}"
        log.warning("event.skipped_late", owner=self.rules.owner, at=location)
        if set(self.rules.streams) == {subjects.CONTROL}:
            self._saver.rebuilds.request(recorded.position)

    def _read_back(self, decision: Recorded) -> None:
        # A batch that timed out may have been in flight all along, so any of the batches sent may come back.
        for outcome in self._unconfirmed.pop(decision.id, ()):
            if outcome.problem is None:
                outcome.pending.stored = (decision.position + outcome.offset, outcome.value)

    def _describe_history(self, bad: Recorded) -> str:
        names = {getattr(bad.event, f) for f in _id_fields(bad.event)}
        past = [r for r in self._recent if names & {getattr(r.event, f) for f in _id_fields(r.event)}]
        lines = [f"  {r.position} {r.actor}: {r.event}" for r in past[-20:]]
        head = f"{self.rules.owner} cannot fold message {bad.position} of {bad.stream}; its history:"
        return "\n".join([head, *lines])

    async def _decide_forever(self) -> None:
        while True:
            raise_if_cancelled()
            if not self._wake.is_set():
                await self._wait_for_work()
            self._wake.clear()
            self._is_deciding = True
            if self._is_leader() and not self._was_leader:
                # Another replica led until now; its decisions are in the log but may not be folded here yet.
                await self._hold_until_folded()
            self._was_leader = self._is_leader()
            while self._may_decide() and await self._decide():
                self._rounds_done += 1
            self._is_deciding = False
            self._rounds_done += 1

    async def _wait_for_work(self) -> None:
        """Wait until something changes or a due time comes."""
        due = self._rounds.timers.due(self.state) if self._may_decide() else None
        if due is None:
            await self._wake.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._inbox.seconds_until(due)):
                await self._wake.wait()

    def decision_progress(self) -> tuple[bool, int]:
        """Whether there is work to decide or to wait for, and how many times that work has finished."""
        return self._is_deciding or (self._may_decide() and bool(self._commands)), self._rounds_done

    def _may_decide(self) -> bool:
        return (
            self._is_leader()
            and not self.standstill.stands.is_set()
            and self.positions[subjects.CONTROL] >= self._last_appended
            and self._caught_up[subjects.CONTROL]
        )

    async def _decide(self) -> bool:
        """Make one round of decisions and return whether another may follow at once."""
        kinds = (self._command_round, self._timer_round, self._reaction_round)
        for _ in kinds:
            self._turn = (self._turn + 1) % len(kinds)
            made = kinds[self._turn]()
            if self._turn == _TIMERS and made.events:
                # A record that looks late may have sent a message that is not in the log yet, and checking
                # takes time.
                made = self._timer_round() if await self._inbox.is_fully_folded() else EMPTY_ROUND
            if made.events:
                return await self._append(made)
            position = self.positions[subjects.CONTROL]
            if made.outcomes and (newest := await self._newest_decision()) > self._fence_position:
                self._commands.put_back(made.waiting)
                # Wait until that decision is folded; otherwise this would loop forever.
                self._last_appended = max(self._last_appended, newest)
                return False
            for outcome in made.outcomes:
                outcome.deliver(position)
        if 0 < self._fence_position <= self._archived_through:
            # The archive may remove only what lies before the newest decision, so append an empty one.
            return await self._append(Round(self._new_id(), self._clock()))
        await asyncio.sleep(0)
        return bool(self._commands)

    async def _newest_decision(self) -> int:
        """Return the position of the newest decision by any replica.

        An answer that stores nothing is not fenced.
        """
        last = await self._journal.last(self._fence_subject)
        return 0 if last is None else last.position

    def _command_round(self) -> Round:
        if not self._commands:
            return EMPTY_ROUND
        return self._rounds.from_commands(
            self.state, self._clock(), self.positions[subjects.CONTROL], self._commands
        )

    def _timer_round(self) -> Round:
        now = self._clock()
        due = self._rounds.timers.due(self.state)
        return EMPTY_ROUND if due is None or due > now else self._rounds.from_due_times(self.state, now)

    def _reaction_round(self) -> Round:
        if not self._unreacted:
            return EMPTY_ROUND
        return self._rounds.from_changes(self.state, self._clock(), self._unreacted)

    def parked_records(self) -> dict[str, str]:
        """Return up to `MAX_PARKED_LISTED` parked records, described in words, each with its reason."""
        return {
            f"{kind} {id}": why
            for (kind, id), why in itertools.islice(self.parked.items(), MAX_PARKED_LISTED)
        }

    def _retry_parked(self, cause: str) -> None:
        """Retry everything parked: the operator may have fixed the cause in the meantime."""
        self._unreacted.update((key, cause) for key in self.parked if key[1] != ALL)
        self.parked.clear()
        self._rounds.timers.parked.clear()

    def _park(self, key: Key, reason: str) -> None:
        if self.parked.get(key) != reason:
            self.parked[key] = reason
            self._measures.parked(key[0])
            log.error("decision.parked", owner=self.rules.owner, record=f"{key[0]} {key[1]}", reason=reason)

    async def _append(self, made: Round) -> bool:
        """Append a round to the log and return whether it was stored."""
        owner = self.rules.owner
        record = Decision(owner, self.positions[subjects.CONTROL], len(made.events), self._replica)
        body = codec.encode(record, id=made.batch, actor=owner, at=made.at)
        spans = [self._span(one) for one in made.events]
        drafts = [Draft(subjects.decision(owner), body, made.batch)]
        for one, span in zip(made.events, spans, strict=True):
            drafts.append(Draft(codec.subject_of(one.event), one.body, one.id, span.header if span else ""))
        self._unconfirmed[made.batch] = tuple(made.outcomes)
        problem = await self._append_batch(drafts, made)
        for span in filter(None, spans):
            span.end(problem)
        return not problem

    def _span(self, decided: Decided) -> Span | None:
        if self._tracer is None or not (within := self._event_spans.cause_of(decided.event, decided.cause)):
            return None
        ids = {name: getattr(decided.event, name) or 0 for name in _id_fields(decided.event)}
        return self._tracer.start_span(codec.kind_of(decided.event).name, within, kind="producer", **ids)

    async def _append_batch(self, drafts: Sequence[Draft], made: Round) -> str:
        """Append a round's batch. Returns what went wrong, or an empty string on success."""
        began = time.perf_counter()
        try:
            fence = Fence(drafts[0].subject, self._fence_position)
            self._last_appended = await self._journal.append_batch(drafts, fence=fence)
        except FenceLost:
            # Another replica has decided meanwhile; its decision arrives with the next messages, then retry.
            self._commands.put_back(made.waiting)
            self._measures.refused()
            await self._hold_until_folded()
            return "another replica has decided"
        except NotStored as error:
            await self._on_refused(made, str(error))
            return str(error)
        except OutcomeUnknown as error:
            self._commands.put_back(made.waiting)
            log.warning("append.unknown", owner=self.rules.owner, error=str(error))
            await self._hold_until_folded()
            return "the log did not answer"
        self._on_stored(made, time.perf_counter() - began)
        return ""

    def _on_stored(self, made: Round, seconds: float) -> None:
        # Earlier batches can no longer be stored: this decision has taken their place behind the fence.
        self._unconfirmed.clear()
        self.refusal = ""
        for outcome in made.outcomes:
            outcome.deliver(self._last_appended - len(made.events))
        self._commands.put_back(made.unfinished)
        self._measures.decided(len(made.events), seconds)

    async def _on_refused(self, made: Round, reason: str) -> None:
        """Handle a round that the log explicitly refused: none of it is stored."""
        if not self.refusal:
            log.error("append.refused", owner=self.rules.owner, reason=reason)
        self.refusal = reason
        self._unconfirmed.pop(made.batch, None)
        for pending in made.waiting:
            pending.fail(unavailable(f"the log refuses the decisions of {self.rules.owner}: {reason}"))
        await asyncio.sleep(REFUSED_RETRY_S)
        # No event comes back from the log to wake the decision loop.
        self._wake.set()

    async def _hold_until_folded(self) -> None:
        """Allow decisions again only after everything now in the log has been folded."""
        self._last_appended = max(self._last_appended, await end_of(self._journal))
        self._wake.set()


def _id_fields(event: Any) -> list[str]:
    return [f for f in event.__struct_fields__ if f.endswith("_id")]


__all__ = ["LogTruncated", "Poison", "Runner"]
