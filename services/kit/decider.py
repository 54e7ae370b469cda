"""Makes the decisions of one service: rounds of commands, due times and reactions, appended behind a fence.

A decision takes effect only once it has been read back from the log, which `services.kit.runner` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from det_contracts import codec, subjects
from det_contracts.envelope import Recorded
from det_contracts.events import Decision
from det_contracts.problems import Refused, unavailable
from services.kit.cancellation import raise_if_cancelled
from services.kit.command_queue import CommandQueue, Pending
from services.kit.inbox import Inbox
from services.kit.log import Draft, Fence, FenceLost, Log, NotStored, OutcomeUnknown
from services.kit.log_budget import OVERHEAD_BYTES, LogBudget
from services.kit.process_metrics import Measures
from services.kit.records import id_fields
from services.kit.roots import get_loaded
from services.kit.rounds import EMPTY_ROUND, Decided, Outcome, Round, Rounds
from services.kit.rules import Key, Rules, every_key
from services.kit.standstill import Standstill, end_of
from services.kit.timers import ALL
from services.kit.trace_context import CURRENT, EventSpans

if TYPE_CHECKING:
    from services.kit.spans import Span, Tracer

S = TypeVar("S")
MAX_PARKED_LISTED = 20
"""Maximum number of parked records reported at once."""
_TIMERS = 1
"""Index of the due-time round among the kinds of rounds."""
MAX_FORGOTTEN_LATE = 10_000
"""How many records that are gone may be remembered as changed, besides as many as there are."""
REFUSED_RETRY_S = 0.5
"""Pause in seconds before deciding again after the log refused to store a batch."""

log = structlog.get_logger()


class Decider(Generic[S]):
    """Decides on the folded state of one runner, while its replica leads.

    The fence rejects a batch from any replica that has not seen the newest decision, even if it still
    believes it leads.
    """

    def __init__(
        self,
        rules: Rules[S],
        journal: Log,
        inbox: Inbox,
        standstill: Standstill,
        *,
        is_leader: Callable[[], bool],
        clock: Callable[[], float],
        new_id: Callable[[], str],
        replica: str,
        measures: Measures,
        stopwatch: Callable[[], float],
        tracer: Tracer | None = None,
    ) -> None:
        """Create a decider; nothing happens until `attach` and `run`. For the arguments, see `Runner`."""
        self._rules = rules
        self._journal = journal
        self._inbox = inbox
        self._standstill = standstill
        self._is_leader = is_leader
        self._clock = clock
        self._new_id = new_id
        self._replica = replica
        self._measures = measures
        self._tracer = tracer
        self._state: S = rules.state()
        self._positions: dict[str, int] = dict.fromkeys(rules.streams, 0)
        self.caught_up = False
        """Whether all of CONTROL that is known to exist is folded."""
        self.fence_subject = subjects.decision(rules.owner)
        self.fence_position = 0
        """Position of the newest decision that is folded."""
        self.archived_through = 0
        """Position up to which the log is archived. Decisions at or below it may be removed from the
        broker."""
        self.event_spans = EventSpans()
        self.unreacted: dict[Key, str] = {}
        """Records that changed since they were last asked about, each with the id of what changed them."""
        self._max_unreacted = MAX_FORGOTTEN_LATE
        self.parked: dict[Key, str] = {}
        """Records that cannot be decided on until they change, each with the reason."""
        self.refusal = ""
        """Why the log currently refuses this service's decisions; empty if it accepts them."""
        self._last_appended = 0
        self._is_deciding, self._rounds_done = False, 0
        self._rounds = Rounds(rules, new_id=new_id, on_parked=self._park, stopwatch=stopwatch)
        self._commands = CommandQueue()
        self._budget = LogBudget()
        self._unconfirmed: dict[str, tuple[Outcome, ...]] = {}
        """Batches whose storage was neither confirmed nor denied, by batch id, with the outcomes to report if
        stored."""
        self._turn = 0
        self._was_leader = False
        self._wake = asyncio.Event()

    async def attach(self, state: S, positions: dict[str, int]) -> None:
        """Decide on a newly loaded state from now on. `positions` are those that the runner advances."""
        self._state, self._positions = state, positions
        self.caught_up = False
        self.parked.clear()
        self._rounds.timers.parked.clear()
        last = await self._journal.last(self.fence_subject)
        # A decision beyond the snapshot has not been folded yet; the fence follows the fold.
        is_folded = last is not None and last.position <= positions[subjects.CONTROL]
        self.fence_position = last.position if last is not None and is_folded else 0
        await self._hold_until_folded()
        # A crash may have come between any event and the reaction to it, and nothing says where. Asking
        # about every record is safe, since `react` returns nothing for what has been read back.
        self.unreacted = dict.fromkeys(every_key(state), "")
        self._max_unreacted = 2 * len(self.unreacted) + MAX_FORGOTTEN_LATE

    @property
    def has_folded_own(self) -> bool:
        """Whether everything that this replica appended is folded."""
        return self._positions[subjects.CONTROL] >= self._last_appended

    def wake(self) -> None:
        """Look for work: something was folded, or leadership may have changed."""
        # Who follows has none, and folds as much as who leads.
        if self._is_leader() or self._was_leader:
            self._wake.set()

    def put(self, pending: Pending) -> None:
        """Queue a command. Raises `Refused` if too much is waiting, or was added to the log, for its user."""
        # Before the queue: a command that is refused here must not take the place of another one of its
        # user.
        if pending.payer:
            self._budget.check(pending.payer, self._clock())
        self._commands.put(pending)
        self.event_spans.record_span(pending.call.id, CURRENT.get())
        self._wake.set()

    def calls_for_decision(self, state: S, key: Key) -> bool:
        """Whether a record calls for a decision, or cannot be decided on."""
        return self._rounds.calls_for_decision(state, key)

    def record_changes(self, causes: Mapping[Key, str]) -> None:
        """Note records that changed, by the event that did so last. Parked ones are asked about again."""
        for key in self.parked.keys() & causes.keys():
            del self.parked[key]
        self._rounds.timers.release(causes.keys())
        self.unreacted.update(causes)
        if len(self.unreacted) > self._max_unreacted:
            self._forget_gone()

    def _forget_gone(self) -> None:
        """Forget the changed records that exist no more, about which no restart would ask either.

        A replica that only follows asks about none, and would remember every record that ever was.
        """
        for kind, id in list(self.unreacted):
            if get_loaded(getattr(self._state, kind), id) is None:
                del self.unreacted[kind, id]
        self._max_unreacted = 2 * len(self.unreacted) + MAX_FORGOTTEN_LATE

    def fail_commands(self, why: Refused) -> None:
        """Fail all pending commands.

        As after a crash, those already sent may be stored; the others are dropped.
        """
        # What was sent cannot be taken back, and may still take effect.
        given_up = [outcome.pending for sent in self._unconfirmed.values() for outcome in sent]
        self._unconfirmed.clear()
        for pending in [*given_up, *self._commands.take_all()]:
            pending.fail(why)

    def read_back(self, decision: Recorded) -> None:
        """Take in that a batch of this owner is in the log."""
        # A batch that timed out may have been in flight all along, so any of the batches sent may come back.
        for outcome in self._unconfirmed.pop(decision.id, ()):
            # What stored nothing rested on events before it that were only predicted. It is decided again.
            if outcome.is_stored:
                outcome.pending.stored = (decision.position + outcome.offset, outcome.value)

    async def run(self) -> None:
        """Decide until cancelled, while this replica leads."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._hold_commands())
            tasks.create_task(self._decide_forever())

    async def _decide_forever(self) -> None:
        this_task = asyncio.current_task()
        while True:
            raise_if_cancelled(this_task)
            if not self._wake.is_set():
                await self._wait_for_work()
            # Before looking, not after: whatever wakes this loop while it decides makes it look once more.
            self._wake.clear()
            self._is_deciding = True
            if self._is_leader() and not self._was_leader:
                # Another replica led until now; its decisions are in the log but may not be folded here yet.
                await self._hold_until_folded()
            self._was_leader = self._is_leader()
            # Again and again: a round of refusals alone appends nothing whose return would wake this loop.
            while self._may_decide() and await self._decide():
                self._rounds_done += 1
            self._is_deciding = False
            self._rounds_done += 1

    async def _hold_commands(self) -> None:
        """Find out what was in the log when commands arrived, until cancelled (docs/decisions/0095).

        Beside the decisions: what else calls for one does not wait for the broker's answer.
        """
        this_task = asyncio.current_task()
        while True:
            raise_if_cancelled(this_task)
            await self._commands.hold_arrivals(self._find_end)
            self._wake.set()

    async def _find_end(self) -> int:
        return await self._journal.end(subjects.CONTROL, after=self._positions[subjects.CONTROL])

    async def _wait_for_work(self) -> None:
        """Wait until something changes or a due time comes."""
        # A follower would find the same due time in the past again and again, without a pause.
        due = self._rounds.timers.due(self._state) if self._may_decide() else None
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
            and not self._standstill.stands.is_set()
            and self.has_folded_own
            and self.caught_up
        )

    async def _decide(self) -> bool:
        """Make one round of decisions and return whether another may follow at once."""
        kinds = (self._command_round, self._timer_round, self._reaction_round)
        for _ in kinds:
            # The turn is kept between calls. If each call began with commands, a busy queue would starve the
            # timers.
            self._turn = (self._turn + 1) % len(kinds)
            made = kinds[self._turn]()
            if self._turn == _TIMERS and made.events:
                # A record that looks late may have sent a message that is not in the log yet, and checking
                # takes time.
                made = self._timer_round() if await self._inbox.is_fully_folded() else EMPTY_ROUND
            if made.events:
                return await self._append(made)
            made.deliver(self._positions[subjects.CONTROL])
        if 0 < self.fence_position <= self.archived_through:
            # The archive may remove only what lies before the newest decision, so append an empty one.
            return await self._append(Round(self._new_id(), self._clock()))
        # A round of refusals alone awaits nothing, so a full queue of them would keep the folding task from
        # running.
        await asyncio.sleep(0)
        return self._commands.has_ready

    def _command_round(self) -> Round:
        position = self._positions[subjects.CONTROL]
        self._commands.release(position)
        if not self._commands.has_ready:
            return EMPTY_ROUND
        return self._rounds.from_commands(self._state, self._clock(), position, self._commands)

    def _timer_round(self) -> Round:
        now = self._clock()
        due = self._rounds.timers.due(self._state)
        return EMPTY_ROUND if due is None or due > now else self._rounds.from_due_times(self._state, now)

    def _reaction_round(self) -> Round:
        if not self.unreacted:
            return EMPTY_ROUND
        return self._rounds.from_changes(self._state, self._clock(), self.unreacted)

    def parked_records(self) -> dict[str, str]:
        """Return up to `MAX_PARKED_LISTED` parked records, described in words, each with its reason."""
        return {
            f"{kind} {id}": why
            for (kind, id), why in itertools.islice(self.parked.items(), MAX_PARKED_LISTED)
        }

    def retry_parked(self, cause: str) -> None:
        """Retry everything parked: the operator may have fixed the cause in the meantime."""
        self.unreacted.update((key, cause) for key in self.parked if key[1] != ALL)
        self.parked.clear()
        self._rounds.timers.parked.clear()

    def _park(self, key: Key, reason: str) -> None:
        if self.parked.get(key) != reason:
            self.parked[key] = reason
            self._measures.parked(key[0])
            log.error("decision.parked", owner=self._rules.owner, record=f"{key[0]} {key[1]}", reason=reason)

    async def _append(self, made: Round) -> bool:
        """Append a round to the log and return whether it was stored."""
        owner = self._rules.owner
        record = Decision(owner, self._positions[subjects.CONTROL], len(made.events), self._replica)
        body = codec.encode(record, id=made.batch, actor=owner, at=made.at)
        spans = [self._span(decided) for decided in made.events]
        drafts = [Draft(subjects.decision(owner), body, made.batch)]
        for decided, span in zip(made.events, spans, strict=True):
            drafts.append(
                Draft(codec.subject_of(decided.event), decided.body, decided.id, span.header if span else "")
            )
        # Before the append: if its answer is lost, the batch may still be read back, and `read_back` must
        # know it.
        self._unconfirmed[made.batch] = tuple(made.outcomes)
        problem = await self._append_batch(drafts, made)
        for span in filter(None, spans):
            span.end(problem)
        return not problem

    def _span(self, decided: Decided) -> Span | None:
        if self._tracer is None or not (within := self.event_spans.cause_of(decided.event, decided.cause)):
            return None
        ids = {name: getattr(decided.event, name) or 0 for name in id_fields(decided.event)}
        span = self._tracer.start_span(codec.kind_of(decided.event).name, within, kind="producer", **ids)
        # Not once it is read back: what the event called for may be in the same batch.
        self.event_spans.record_span(decided.id, span.header)
        return span

    async def _append_batch(self, drafts: Sequence[Draft], made: Round) -> str:
        """Append a round's batch. Returns what went wrong, or an empty string on success."""
        began = time.perf_counter()
        try:
            fence = Fence(drafts[0].subject, self.fence_position)
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
            # It may still arrive. It then expects the same predecessor as our next batch, so the broker
            # stores only one of them; if it is the old one, `read_back` answers its commands.
            log.warning("append.unknown", owner=self._rules.owner, error=str(error))
            await self._hold_until_folded()
            return "the log did not answer"
        self._on_stored(made, time.perf_counter() - began)
        return ""

    def _on_stored(self, made: Round, seconds: float) -> None:
        # Earlier batches can no longer be stored: this decision has taken their place behind the fence.
        self._unconfirmed.clear()
        self.refusal = ""
        made.deliver(self._last_appended - len(made.events))
        self._commands.put_back(made.unfinished)
        # Only now: a batch that was refused takes no space.
        self._charge(made)
        self._measures.decided(len(made.events), seconds)

    def _charge(self, made: Round) -> None:
        """Count what commands have added to the log."""
        payers = {pending.call.id: pending.payer for pending in made.waiting if pending.payer}
        for decided in made.events:
            if payer := payers.get(decided.cause):
                self._budget.charge(payer, len(decided.body) + OVERHEAD_BYTES, self._clock())

    async def _on_refused(self, made: Round, reason: str) -> None:
        """Handle a round that the log explicitly refused: none of it is stored."""
        if not self.refusal:
            log.error("append.refused", owner=self._rules.owner, reason=reason)
        self.refusal = reason
        # A refused batch can never be read back.
        self._unconfirmed.pop(made.batch, None)
        for pending in made.waiting:
            pending.fail(unavailable(f"the log refuses the decisions of {self._rules.owner}: {reason}"))
        await asyncio.sleep(REFUSED_RETRY_S)
        # No event comes back from the log to wake the decision loop.
        self._wake.set()

    async def _hold_until_folded(self) -> None:
        """Allow decisions again only after everything now in the log has been folded."""
        self._last_appended = max(self._last_appended, await end_of(self._journal))
        self._wake.set()
