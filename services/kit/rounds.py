"""What one round decides: events appended to the log as one fenced batch, and the answers that follow.

Decisions come from three sources: user commands, due times, and records that changed. They take turns, one
round each, so none can starve another. A round is built without awaiting and changes nothing; it takes effect
once it has been read back from the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from det_contracts import codec
from det_contracts.envelope import Recorded
from det_contracts.limits import EVENT_BYTES, NAME_CHARACTERS, is_name
from det_contracts.problems import Problem, Refused, invalid
from services.kit.command_queue import CommandQueue, Pending
from services.kit.overlay import view_of
from services.kit.roots import PagedTable, PageFault
from services.kit.rules import Key, Rules
from services.kit.timers import Timers

S = TypeVar("S")
MAX_EVENTS = 999
"""Events per round, besides the decision record. The broker accepts 1,000 messages in one atomic batch."""
MAX_BYTES = 4 * 1024 * 1024
"""Maximum size of a round, except that a single event may be larger."""
MAX_ROUNDS_PER_COMMAND = 1000
"""Maximum number of rounds that one command may take."""
TIME_BUDGET_S = 0.02
"""Time budget in seconds for deciding commands in one round, because the event loop is blocked meanwhile."""

log = structlog.get_logger()


class Decided(msgspec.Struct, frozen=True):
    """An event of a round, as it will be stored in the log."""

    event: Any
    id: str
    cause: str
    body: bytes


class Outcome(msgspec.Struct, frozen=True):
    """The result of a command, valid once the log contains the round up to the event before `offset`."""

    pending: Pending
    offset: int
    value: Any
    problem: Refused | None = None
    is_stored: bool = False
    """Whether the round has events of the command. Otherwise its answer rests on the folded state alone."""

    def deliver(self, before: int) -> None:
        """Answer the command. `before` is the position just before the round's first event."""
        if self.problem is not None:
            self.pending.fail(self.problem)
        else:
            self.pending.succeed(before + self.offset, self.value)


class Round:
    """A batch under construction."""

    def __init__(self, batch: str, at: float) -> None:
        self.batch = batch
        self.at = at
        self.events: list[Decided] = []
        self.outcomes: list[Outcome] = []
        self.unfinished: list[Pending] = []
        """A command with too many events for one round. It is decided again once these are read back."""
        self._bytes = 0

    @property
    def waiting(self) -> list[Pending]:
        """The commands that this round decides."""
        return [outcome.pending for outcome in self.outcomes] + self.unfinished

    def deliver(self, before: int) -> None:
        """Answer the commands. `before` is the position just before the round's first event."""
        for outcome in self.outcomes:
            outcome.deliver(before)

    def encode(self, events: Iterable[Any], actor: str, cause: str) -> list[Decided]:
        """Encode events as they would follow here. Raises `Refused` if one is too large for the log."""
        made = []
        for number, event in enumerate(events, len(self.events)):
            id = f"{self.batch}-{number}"
            body = codec.encode(event, id=id, actor=actor, at=self.at, cause=cause)
            if len(body) > EVENT_BYTES:
                what = codec.kind_of(event).name
                raise invalid(
                    f"{what} would be {len(body):,} bytes in the log, which takes {EVENT_BYTES:,}: "
                    "ask for less at once, or for smaller values"
                )
            made.append(Decided(event, id, cause, body))
        return made

    def fits(self, more: Sequence[Decided]) -> bool:
        """Whether these events may still be added."""
        count = len(self.events) + len(more)
        size = self._bytes + sum(len(decided.body) for decided in more)
        return count <= 1 or (count <= MAX_EVENTS and size <= MAX_BYTES)

    def add(self, more: Iterable[Decided]) -> None:
        """Add events to the round."""
        for decided in more:
            self.events.append(decided)
            self._bytes += len(decided.body)

    def fitting(self, more: list[Decided]) -> list[Decided]:
        """Return as many of these events as still fit."""
        count, size = 0, self._bytes
        for count, decided in enumerate(more, 1):
            size += len(decided.body)
            number = len(self.events) + count
            if number > 1 and (number > MAX_EVENTS or size > MAX_BYTES):
                return more[: count - 1]
        return more[:count]


EMPTY_ROUND = Round("", 0.0)
"""The empty round. Never add to it."""


class Rounds(Generic[S]):
    """Builds the rounds of one owner."""

    def __init__(
        self,
        rules: Rules[S],
        *,
        new_id: Callable[[], str],
        on_parked: Callable[[Key, str], None],
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`on_parked` is called with each record that cannot be decided on, and the reason."""
        self._rules = rules
        self._new_id = new_id
        self._on_parked = on_parked
        self._stopwatch = stopwatch
        self.timers = Timers(rules, on_parked)
        """The times that the state waits for."""

    def from_due_times(self, state: S, now: float) -> Round:
        """Build a round from the due times that have passed."""
        new_round = Round(self._new_id(), now)
        for key, fact in self.timers.facts(state, now):
            try:
                made = new_round.encode([fact], self._rules.owner, "")
            except Exception as error:
                self.timers.park(key, error)
                continue
            if not new_round.fits(made):
                break
            new_round.add(made)
        return new_round

    def calls_for_decision(self, state: S, key: Key) -> bool:
        """Whether a record calls for a decision. One that cannot be decided on is parked, and does."""
        try:
            return bool(self._rules.react(state, key))
        except PageFault:
            raise
        except Exception as error:
            self._park(key, error)
            return True

    def from_changes(self, state: S, now: float, touched: dict[Key, str]) -> Round:
        """Build a round from the changed records in `touched`.

        Records that need nothing are removed from it. If the round is full, those that it decides on come
        after all others in the next.
        """
        new_round = Round(self._new_id(), now)
        # Collected first: the loop runs over `touched`.
        settled, served = [], []
        for key, cause in touched.items():
            made = self._events_for(new_round, state, key, cause)
            if not made:
                settled.append(key)
                continue
            # The key stays in `touched` although its events are added: it is settled only when `react`
            # returns nothing, once they have been read back. What did not fit follows then, too.
            some = new_round.fitting(made)
            new_round.add(some)
            if some:
                served.append(key)
            if len(some) < len(made):
                # Otherwise a few records that call for more without end would fill every round.
                touched.update([(key, touched.pop(key)) for key in served])
                break
        for key in settled:
            del touched[key]
        return new_round

    def _events_for(self, new_round: Round, state: S, key: Key, cause: str) -> list[Decided]:
        try:
            return new_round.encode(self._rules.react(state, key), self._rules.owner, cause)
        except PageFault:
            raise
        except Exception as error:
            # A bug that affects one record must not stop the others.
            self._park(key, error)
        return []

    def _park(self, key: Key, error: Exception) -> None:
        if isinstance(error, Refused):
            self._on_parked(key, str(error))
            return
        record = f"{key[0]} {key[1]}"
        log.error("decision.failed", owner=self._rules.owner, record=record, exc_info=error)
        self._on_parked(key, repr(error))

    def from_commands(self, state: S, now: float, position: int, waiting: CommandQueue) -> Round:
        """Decide as many waiting commands as fit, each as if those before it were already in the log."""
        new_round, ahead = Round(self._new_id(), now), PredictedState(self._rules, state, position)
        began = self._stopwatch()
        while (pending := waiting.pop()) is not None:
            # Its batch was read back after the answer had been lost. To decide it again would make it take
            # effect twice.
            if pending.stored is not None:
                pending.succeed(*pending.stored)
            elif not self._decide(new_round, ahead, pending, waiting):
                waiting.put_back([pending])
                break
            if new_round.unfinished or ahead.is_unknown or self._stopwatch() - began > TIME_BUDGET_S:
                break
        may_react = self._rules.may_react_ahead
        if may_react is not None and not new_round.unfinished and not ahead.is_unknown:
            try:
                self._react_ahead(new_round, ahead, began, may_react)
            except PageFault:
                waiting.put_back(new_round.waiting)
                raise
        return new_round

    def _react_ahead(
        self,
        new_round: Round,
        ahead: PredictedState[S],
        began: float,
        may_react: Callable[[S, S, Sequence[Any]], bool],
    ) -> None:
        """Add what the commands' events call for, as if these were in the log already.

        What does not fit, takes too long, fails, or may not hold by then is decided once they are read back,
        when each record that they change is asked about in any case.
        """
        while ahead.touched and self._stopwatch() - began < TIME_BUDGET_S:
            key = next(iter(ahead.touched))
            cause = ahead.touched.pop(key)
            try:
                events = self._rules.react(ahead.state, key)
                made = new_round.encode(events, self._rules.owner, cause)
                if not new_round.fits(made) or not may_react(ahead.base, ahead.state, events):
                    return
                ahead.fold(made, self._rules.owner, new_round.at)
            except PageFault:
                raise
            except Exception:
                # Whoever decides on the real state says why, and parks the record.
                return
            new_round.add(made)

    def _decide(
        self, new_round: Round, ahead: PredictedState[S], pending: Pending, waiting: CommandQueue
    ) -> bool:
        """Decide one command. Returns False if it must be the first of the next round."""
        # A command that fails after others may have failed because of the prediction. It is tried again
        # alone, on the real state, before it is blamed.
        is_first = not new_round.events
        try:
            rule = self._rules.commands[type(pending.command)]
            # The rule may read the predicted state only: events of this round are not yet in the real one.
            result = rule(ahead.state, pending.command, pending.call)
            actor = f"user:{pending.user}"
            # One event more than fits is enough to see that the command needs another round.
            made = new_round.encode(result.events[: MAX_EVENTS + 1], actor, pending.call.id)
            is_complete = new_round.fits(made)
            if not is_complete and not is_first:
                return False
            if not is_complete:
                made = self._first_part(new_round, pending, made)
            # Before the round keeps the events: what this service itself cannot fold must not get into the
            # log, where it would stop every replica.
            ahead.fold(made, actor, new_round.at)
        except PageFault:
            # The state is about to be reloaded. The runner then answers all commands that are in the queue.
            waiting.put_back([*new_round.waiting, pending])
            raise
        except Refused as refusal:
            new_round.outcomes.append(Outcome(pending, len(new_round.events), None, refusal))
            return True
        except Exception as error:
            if not is_first:
                return False
            new_round.outcomes.append(Outcome(pending, 0, None, self._failed(pending, error)))
            # The view may be changed in part, so nothing further can be decided in it.
            ahead.is_unknown = True
            return True
        new_round.add(made)
        if is_complete:
            new_round.outcomes.append(
                Outcome(pending, len(new_round.events), result.value, is_stored=bool(made))
            )
        else:
            new_round.unfinished.append(pending)
        return True

    def _first_part(self, new_round: Round, pending: Pending, made: list[Decided]) -> list[Decided]:
        """Return the part that fits into this round of a command that fills more than one."""
        pending.parts += 1
        if pending.parts > MAX_ROUNDS_PER_COMMAND:
            raise RuntimeError(
                f"{type(pending.command).__name__} does not end after {MAX_ROUNDS_PER_COMMAND} rounds"
            )
        return new_round.fitting(made)

    def _failed(self, pending: Pending, error: Exception) -> Refused:
        name, id = type(pending.command).__name__, pending.call.id
        log.exception("command.failed", owner=self._rules.owner, command=name, call=id, exc_info=error)
        message = f"{self._rules.owner} failed on {name} ({error!r}); its log has more under call {id}"
        return Refused(Problem("internal", message))


class PredictedState(Generic[S]):
    """The state as it will be once the round is in the log."""

    def __init__(self, rules: Rules[S], state: S, position: int) -> None:
        self._rules = rules
        self._next = position + 2
        """Position of the round's first event, which follows the decision record."""
        self.base = state
        """The state as it is; read-only."""
        self._view: S | None = None
        self.is_unknown = False
        """True if no further command can be decided before this round is in the log."""
        self.touched: dict[Key, str] = {}
        """Records that the folded events change, each with the id of the newest that does."""

    @property
    def state(self) -> S:
        """The predicted state; read-only."""
        return self.base if self._view is None else self._view

    def fold(self, made: Sequence[Decided], actor: str, at: float) -> None:
        """Fold further events into the view. If the fold raises, the events must not reach the log."""
        if made and self._view is None:
            # A round of refusals needs no view.
            self._view = view_of(self.base)
        for decided in made:
            self._record_absent(decided.event)
            ahead = Recorded(self._next, decided.event, decided.id, actor, at, decided.cause)
            for kind, key in self._rules.evolve(self.state, ahead):
                if isinstance(key, str) and not is_name(key):
                    raise _unsavable_key(kind, key)
                self.touched[kind, key] = decided.id
            self._next += 1

    def _record_absent(self, event: Any) -> None:
        """Keep the fold from looking in the database for what this event creates."""
        created_key = self._rules.roots.created_key(event) if self._rules.roots is not None else None
        records = getattr(self.base, created_key[0]) if created_key is not None else None
        if created_key is not None and isinstance(records, PagedTable):
            records.record_absent(created_key[1])


def _unsavable_key(kind: str, key: str) -> Refused:
    """Refuse a key that cannot be saved: every service must be able to store everything in the log."""
    problem = f"{kind} would have a name of {len(key)} characters, {key[:40]!r}..."
    return invalid(f"{problem}: at most {NAME_CHARACTERS} are allowed, without NUL; choose a shorter one")
