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

import structlog

from det_contracts import bounds, codec, subjects
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import Decision
from det_contracts.events.archive import SegmentSealed
from det_contracts.events.gateway import DecisionsRetried, EventSkipped, LoggingSet, RebuildAsked
from det_contracts.problems import Refused, invalid, unavailable
from services.kit.command_queue import Pending, Waiting
from services.kit.inbox import Inbox
from services.kit.lag import Behind
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
from services.kit.pager import Pager
from services.kit.portions import portions_of
from services.kit.position_waiters import Reached
from services.kit.process import single_errors
from services.kit.process_metrics import Measures
from services.kit.records import read_event
from services.kit.roots import PageFault
from services.kit.rounds import NOTHING, Decided, Outcome, Round, Rounds
from services.kit.rules import Call, Key, Rules, every_key
from services.kit.snapshot_store import DatabaseSaver, Saver
from services.kit.standstill import Failed, Poison, Standstill, end_of, passed_over
from services.kit.task_ending import go_on_unless_ended
from services.kit.trace_context import CURRENT, Trail

if TYPE_CHECKING:
    from services.kit.spans import Span, Tracer

S = TypeVar("S")
Read = Callable[[Stored, str], Recorded]
MOST_PARKED = 20
"""Maximum number of parked records reported at once."""
_EXPIRED = 1
"""Index of the due-time round among the kinds of rounds."""
REFUSED_AGAIN_S = 0.5
"""Pause in seconds before deciding again after the log refused to store a batch."""

log = structlog.get_logger()


class Runner(Generic[S]):
    """Runs one service's rules over the log.

    Several replicas may run. Only the one whose `leading()` is true decides. The fence rejects a batch from
    any replica that has not seen the newest decision, even if it still believes it leads.
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
        stopwatch: Callable[[], float] = time.perf_counter,
        print_as: Callable[[LoggingSet], None] = lambda _: None,
    ) -> None:
        """Create a runner; nothing happens until `run`.

        `print_as` hears how the log of this process is to be printed.
        `stopwatch` says how long a round was worked on; it decides how much goes into one, never what.
        """
        self.rules = rules
        self.state: S = rules.state()
        self.positions: dict[str, int] = dict.fromkeys(rules.streams, 0)
        self.ready = asyncio.Event()
        self._journal = journal
        self._saver = saver
        self._leading = leading
        self._print_as = print_as
        self._clock = clock
        self._new_id = new_id
        self._replica = replica or new_id()[:8]
        self._measures = measures or Measures(rules.owner)
        self._tracer = tracer
        self._trail = Trail()
        self._fence = 0
        self._fence_subject = subjects.decision(rules.owner)
        self._archived = 0
        """Position up to which the log is archived. Decisions at or below it may be removed from the
        broker."""
        self._appended = 0
        self._caught_up: dict[str, bool] = dict.fromkeys(rules.streams, False)
        self._touched: dict[Key, str] = {}
        self._dirty: dict[Key, None] = {}
        """Keys of folded records that are not yet saved, in log order."""
        self._deciding, self._rounds_made = False, 0
        self._rounds = Rounds(rules, new_id=new_id, parked=self._park, stopwatch=stopwatch)
        self._waiting = Waiting()
        self._sent: dict[str, tuple[Outcome, ...]] = {}
        """Batches whose storage was neither confirmed nor denied, by batch id, with the outcomes to report if
        stored."""
        self._turn = 0
        self._leads = False
        self.parked: dict[Key, str] = {}
        """Records that cannot be decided on until they change, each with the reason."""
        self.refusal = ""
        """Why the log currently refuses this service's decisions; empty if it accepts them."""
        self._recent: deque[Recorded] = deque(maxlen=200)
        self._wake = asyncio.Event()
        self._inbox = Inbox(journal, clock)
        self.standstill = Standstill(rules.owner, journal)
        self._reached = {stream: Reached() for stream in rules.streams} | {
            subjects.WITNESS: self._inbox.admitted
        }
        self._news = Reached()
        """How often something was folded, or leadership may have changed."""
        self._hearers: list[Callable[[Sequence[Recorded]], None]] = []
        self._feeds: dict[str, Feed] = {}
        self.pager: Pager[S] | None = None
        """Set if the rules define which records belong together."""
        if isinstance(saver, DatabaseSaver) and saver.roots is not None:
            self.pager = Pager(rules, saver, saver.roots, faulted=self._fault)
        self._faults: deque[PageFault] = deque(maxlen=1)
        """The fault that requires the state to be reloaded."""
        self._faulted = asyncio.Event()

    def hear(self, hearer: Callable[[Sequence[Recorded]], None]) -> None:
        """Have `hearer` called with the events of each portion once they are folded."""
        self._hearers.append(hearer)

    def behind(self) -> dict[str, Behind]:
        """Per stream, the messages known to exist but not yet folded."""
        return {stream: feed.behind for stream, feed in self._feeds.items()}

    async def run(self) -> None:
        """Load the snapshot, then fold and decide until cancelled. Raises `LogTruncated`.

        An event that cannot be folded does not end it; see `services.kit.standstill`.
        """
        while True:
            why: Refused
            try:
                await self._live()
            except* PageFault:
                why = self._faults[-1]
                log.warning("state.loaded_anew", owner=self.rules.owner, reason=str(why))
            except* Poison as group:
                (poison, *_) = single_errors(group)
                assert isinstance(poison, Poison)  # noqa: S101 - for the type checker
                log.critical("event.failed", at=poison.failed.place, exc_info=poison)
                await self.standstill.note(poison.failed)
                why = poison.failed.refusal(self.rules.owner)
            self._give_up_commands(why)

    async def _live(self) -> None:
        await self._begin()
        async with contextlib.AsyncExitStack() as stack:
            for stream, filters in self.rules.streams.items():
                reading = self._journal.read(stream, after=self.positions[stream], subjects=filters)
                self._feeds[stream] = await stack.enter_async_context(reading)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._saver.run())
                tasks.create_task(self._decide_for_ever())
                tasks.create_task(self._until_faulted())
                for stream, feed in self._feeds.items():
                    tasks.create_task(self._fold_for_ever(stream, feed))

    async def _begin(self) -> None:
        self.state, stored = await self._saver.load()
        self._faulted.clear()
        self.positions = {stream: stored.get(stream, 0) for stream in self.rules.streams}
        self._caught_up = dict.fromkeys(self.rules.streams, False)
        self._dirty, self.parked = {}, {}
        self._recent.clear()
        if self.pager is not None:
            self.pager.begin(self.state, self.positions)
        for stream, position in self.positions.items():
            self._reached[stream].begin(position)
        if not any(self.positions.values()):
            # What is folded from the beginning serves all requests for that.
            self._saver.rebuilds.serve(await end_of(self._journal))
        self._fence = await self._last_decision()
        await self._inbox.look_back(self.positions[subjects.CONTROL])
        await self.standstill.look_back()
        await self._wait_for_log()
        self._touched = dict.fromkeys(every_key(self.state), "")

    def _fault(self, fault: PageFault) -> None:
        self._faults.append(fault)
        self._faulted.set()

    async def _until_faulted(self) -> None:
        """Raise the page fault that a read-only caller ran into."""
        await self._faulted.wait()
        raise self._faults[-1]

    def _give_up_commands(self, why: Refused) -> None:
        """Fail all pending commands.

        As after a crash, those already sent may be stored; the others are dropped.
        """
        given_up = [outcome.pending for sent in self._sent.values() for outcome in sent]
        self._sent.clear()
        while (pending := self._waiting.take()) is not None:
            given_up.append(pending)
        for pending in given_up:
            pending.fail(why)

    async def answer(self, query: Any) -> Any:
        """Answer a query from the folded state. Raises `Refused`."""
        if self._faulted.is_set():
            # An event may be only half folded.
            raise self._faults[-1]
        if self.pager is not None:
            await self.pager.bring([query])
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
                    await self.pager.bring([command])
                self._waiting.put(pending)
                self._trail.put(call.id, CURRENT.get())
                self._wake.set()
                return await pending.answer
        except TimeoutError:
            raise unavailable(f"{self.rules.owner} could not decide within {within_s:.0f} s") from None

    async def reach(self, position: int, within_s: float = 10.0, stream: str = subjects.CONTROL) -> None:
        """Wait until a stream is folded up to `position`.

        Raises `Refused` (unavailable) after `within_s` seconds. For WITNESS, this waits until every statement
        up to `position` has been either refused, or admitted and folded.
        """
        if stream not in self._reached:
            raise invalid(f"{self.rules.owner} does not read {stream}")
        failed = self.standstill.failed
        if failed is not None and position > self._reached[stream].position:
            raise failed.refusal(self.rules.owner)
        try:
            async with asyncio.timeout(within_s):
                await self._reached[stream].reach(position)
        except TimeoutError:
            raise unavailable(
                f"{self.rules.owner} is at position {self._reached[stream].position} of {stream}, "
                f"not yet at {position}; try again"
            ) from None

    def lead(self) -> None:
        """Tell the runner that leadership may have changed."""
        self._wake.set()
        self._news.move(self._news.position + 1)

    async def news(self, after: int) -> int:
        """Wait until the news counter exceeds `after`: events were folded, or leadership may have changed.

        Returns the new counter value, to pass in the next call. Start with 0, which may return at once.
        """
        await self._news.reach(after + 1)
        return self._news.position

    async def _last_decision(self) -> int:
        last = await self._journal.last(subjects.decision(self.rules.owner))
        # A decision beyond the snapshot has not been folded yet; the fence follows the fold.
        return last.position if last and last.position <= self.positions[subjects.CONTROL] else 0

    async def _fold_for_ever(self, stream: str, feed: Feed) -> None:
        read = self.rules.decode.get(stream, read_event)
        while True:
            go_on_unless_ended()
            batch = await feed.batch()
            *parts, last = portions_of(batch.messages, self.standstill.before(stream))
            for part in parts:
                await self._fold_portion(stream, read, part, caught_up=False)
            await self._fold_portion(stream, read, last, caught_up=batch.caught_up)

    async def _fold_portion(
        self, stream: str, read: Read, messages: Sequence[Stored], *, caught_up: bool
    ) -> None:
        await self.standstill.wait(stream, messages)
        began = time.perf_counter()
        events = [self._readable(read, message, stream) for message in messages]
        if self.pager is not None:
            # From here to the last of these events nothing else is done.
            await self.pager.bring(one.event for one in events)
        for message, event in zip(messages, events, strict=True):
            if message.subject == self._fence_subject:
                # The content does not matter: the broker compares positions.
                self._fence = message.position
            self._fold(message, event)
        if events:
            self.positions[stream] = events[-1].position
            self._measures.folded(stream, events, time.perf_counter() - began)
            if self._tracer is not None:
                self._trail.note(messages, events)
        self._caught_up[stream] = caught_up
        for hearer in self._hearers:
            hearer(events)
        await self._saver.changed(self.state, self._dirty, events, dict(self.positions))
        self._dirty = {}
        # A slow broker may claim too early that the stream has no more messages.
        if all(self._caught_up.values()) and self.positions[subjects.CONTROL] >= self._appended:
            self.ready.set()
        if self._caught_up[subjects.CONTROL]:
            self._wake.set()
        self._reached[stream].move(self.positions[stream])
        if events:
            self._news.move(self._news.position + 1)
        self._inbox.folded(events)
        if self.pager is not None:
            self.pager.let_go(self._touched, self.parked)
        await asyncio.sleep(0)

    def _readable(self, read: Read, message: Stored, stream: str) -> Recorded:
        if self.standstill.skips(stream, message.position):
            return passed_over(message, stream)
        try:
            return read(message, stream)
        except Exception as error:
            failed = Failed(stream, message.position, message.subject, repr(error))
            raise Poison(failed, f"{self.rules.owner} cannot read message {failed.place}") from error

    def _fold(self, message: Stored, recorded: Recorded) -> None:
        event = recorded.event
        if type(event) is Decision:
            self._read_back(recorded)
            return
        if type(event) is SegmentSealed:
            self._archived = max(self._archived, event.last)
        if type(event) is DecisionsRetried and event.owner == self.rules.owner:
            self._ask_again(recorded.id)
        if type(event) is EventSkipped:
            self._heed_skipped(recorded)
        if type(event) is RebuildAsked and event.owner == self.rules.owner:
            self._saver.rebuilds.ask(recorded.position)
        if type(event) is LoggingSet:
            self._print_as(event)
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
            raise Poison(failed, self._story(recorded)) from error
        if self.pager is not None:
            self.pager.moved(keys)
        for key in keys:
            # The record changed, so ask about it again even if it was parked.
            self.parked.pop(key, None)
            self._touched[key] = recorded.id
            self._dirty[key] = None

    def _heed_skipped(self, recorded: Recorded) -> None:
        event: EventSkipped = recorded.event
        if not self.standstill.heed(event, self.positions.get(event.stream, 0)):
            return
        # A replica of another release could fold the event. The log now says that it has no effect.
        place = f"{event.stream} {event.position}"
        log.warning("event.skipped_late", owner=self.rules.owner, at=place)
        if set(self.rules.streams) == {subjects.CONTROL}:
            self._saver.rebuilds.ask(recorded.position)

    def _read_back(self, decision: Recorded) -> None:
        # A batch that timed out may have been in flight all along, so any of the batches sent may come back.
        for outcome in self._sent.pop(decision.id, ()):
            if outcome.problem is None:
                outcome.pending.stored = (decision.position + outcome.place, outcome.value)

    def _story(self, bad: Recorded) -> str:
        names = {getattr(bad.event, f) for f in _id_fields(bad.event)}
        past = [r for r in self._recent if names & {getattr(r.event, f) for f in _id_fields(r.event)}]
        lines = [f"  {r.position} {r.actor}: {r.event}" for r in past[-20:]]
        head = f"{self.rules.owner} cannot fold message {bad.position} of {bad.stream}; its history:"
        return "\n".join([head, *lines])

    async def _decide_for_ever(self) -> None:
        while True:
            go_on_unless_ended()
            if not self._wake.is_set():
                await self._wait_for_cause()
            self._wake.clear()
            self._deciding = True
            if self._leading() and not self._leads:
                # Another replica led until now; its decisions are in the log but may not be folded here yet.
                await self._wait_for_log()
            self._leads = self._leading()
            while self._may_decide() and await self._decide():
                self._rounds_made += 1
            self._deciding = False
            self._rounds_made += 1

    async def _wait_for_cause(self) -> None:
        """Wait until something changes or a due time comes."""
        due = self.rules.due(self.state) if self._may_decide() else None
        if due is None:
            await self._wake.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._inbox.wait(due)):
                await self._wake.wait()

    def deciding(self) -> tuple[bool, int]:
        """Whether there is work to decide or to wait for, and how many times that work has finished."""
        return self._deciding or (self._may_decide() and bool(self._waiting)), self._rounds_made

    def _may_decide(self) -> bool:
        return (
            self._leading()
            and not self.standstill.stands.is_set()
            and self.positions[subjects.CONTROL] >= self._appended
            and self._caught_up[subjects.CONTROL]
        )

    async def _decide(self) -> bool:
        """Make one round of decisions and return whether another may follow at once."""
        kinds = (self._rulings, self._expired, self._reactions)
        for _ in kinds:
            self._turn = (self._turn + 1) % len(kinds)
            made = kinds[self._turn]()
            if self._turn == _EXPIRED and made.events:
                # A record that looks late may have sent a message that is not in the log yet, and checking
                # takes time.
                made = self._expired() if await self._inbox.is_read() else NOTHING
            if made.events:
                return await self._append(made)
            position = self.positions[subjects.CONTROL]
            if made.outcomes and (newest := await self._newest_decision()) > self._fence:
                self._waiting.back(made.waiting)
                # Wait until that decision is folded; otherwise this would loop forever.
                self._appended = max(self._appended, newest)
                return False
            for outcome in made.outcomes:
                outcome.tell(position)
        if 0 < self._fence <= self._archived:
            # The archive may remove only what lies before the newest decision, so append an empty one.
            return await self._append(Round(self._new_id(), self._clock()))
        await asyncio.sleep(0)
        return bool(self._waiting)

    async def _newest_decision(self) -> int:
        """Return the position of the newest decision by any replica.

        An answer that stores nothing is not fenced.
        """
        last = await self._journal.last(self._fence_subject)
        return 0 if last is None else last.position

    def _rulings(self) -> Round:
        if not self._waiting:
            return NOTHING
        return self._rounds.rulings(
            self.state, self._clock(), self.positions[subjects.CONTROL], self._waiting
        )

    def _expired(self) -> Round:
        now = self._clock()
        due = self.rules.due(self.state)
        return NOTHING if due is None or due > now else self._rounds.expired(self.state, now)

    def _reactions(self) -> Round:
        if not self._touched:
            return NOTHING
        return self._rounds.reactions(self.state, self._clock(), self._touched)

    def parked_records(self) -> dict[str, str]:
        """Return up to `MOST_PARKED` parked records, described in words, each with its reason."""
        return {f"{kind} {id}": why for (kind, id), why in itertools.islice(self.parked.items(), MOST_PARKED)}

    def _ask_again(self, cause: str) -> None:
        """Retry everything parked: the operator may have fixed the cause in the meantime."""
        self._touched.update(dict.fromkeys(self.parked, cause))
        self.parked.clear()

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
        self._sent[made.batch] = tuple(made.outcomes)
        problem = await self._store(drafts, made)
        for span in filter(None, spans):
            span.end(problem)
        return not problem

    def _span(self, one: Decided) -> Span | None:
        if self._tracer is None or not (within := self._trail.behind(one.event, one.cause)):
            return None
        ids = {name: getattr(one.event, name) or 0 for name in _id_fields(one.event)}
        return self._tracer.begin(codec.kind_of(one.event).name, within, kind="producer", **ids)

    async def _store(self, drafts: Sequence[Draft], made: Round) -> str:
        """Append a round's batch. Returns what went wrong, or an empty string on success."""
        began = time.perf_counter()
        try:
            fence = Fence(drafts[0].subject, self._fence)
            self._appended = await self._journal.append_batch(drafts, fence=fence)
        except FenceLost:
            # Another replica has decided meanwhile; its decision arrives with the next messages, then retry.
            self._waiting.back(made.waiting)
            self._measures.refused()
            await self._wait_for_log()
            return "another replica has decided"
        except NotStored as error:
            await self._refused(made, str(error))
            return str(error)
        except OutcomeUnknown as error:
            self._waiting.back(made.waiting)
            log.warning("append.unknown", owner=self.rules.owner, error=str(error))
            await self._wait_for_log()
            return "the log did not answer"
        self._stored(made, time.perf_counter() - began)
        return ""

    def _stored(self, made: Round, seconds: float) -> None:
        # Earlier batches can no longer be stored: this decision has taken their place behind the fence.
        self._sent.clear()
        self.refusal = ""
        for outcome in made.outcomes:
            outcome.tell(self._appended - len(made.events))
        self._waiting.back(made.unfinished)
        self._measures.decided(len(made.events), seconds)

    async def _refused(self, made: Round, reason: str) -> None:
        """Handle a round that the log explicitly refused: none of it is stored."""
        if not self.refusal:
            log.error("append.refused", owner=self.rules.owner, reason=reason)
        self.refusal = reason
        self._sent.pop(made.batch, None)
        for pending in made.waiting:
            pending.fail(unavailable(f"the log refuses the decisions of {self.rules.owner}: {reason}"))
        await asyncio.sleep(REFUSED_AGAIN_S)
        # No event comes back from the log to wake the decision loop.
        self._wake.set()

    async def _wait_for_log(self) -> None:
        """Allow decisions again only after everything now in the log has been folded."""
        self._appended = max(self._appended, await end_of(self._journal))
        self._wake.set()


def _id_fields(event: Any) -> list[str]:
    return [f for f in event.__struct_fields__ if f.endswith("_id")]


__all__ = ["LogTruncated", "Poison", "Runner"]
