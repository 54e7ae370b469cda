"""Fetches the required parts of CONTROL through narrow filters, never the whole log."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing

from det_contracts import subjects
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import scheduler, searcher
from det_contracts.problems import unavailable
from services.kit.jetstream_feed import READ_ERRORS
from services.kit.log import Log, Stored
from services.kit.log_range import read_between, read_range
from services.kit.records import read_event
from services.why.chain import Explanation, chain, newest_steps
from services.why.history import Cause, Entity, History, Missing
from services.why.subject import Subject, current_state_events
from services.why.timeline import Period, timeline

PART = 100
"""Events that are decoded in one turn."""
MAX_EVENTS_PER_ENTITY = 5000
"""Maximum number of events kept per thing. Longer histories lose their oldest events."""
CAUSE_SEARCH_DISTANCE = 2000
"""How many positions before an event to look for its cause. Deciders react to recent events."""
MAX_TIMELINE_EVENTS = 50_000
"""Maximum number of events of an experiment and its allocations in its timeline."""
SEARCH_WINDOW = 5000
"""How many positions from an allocation's start and end to look for its processes' events. Workers live long.
"""
READ_TIMEOUT_S = 10.0
MAX_OWNER_READS = 8
"""Maximum number of reads for one owner's newest events. Together they cover over a million positions."""
MAX_READS = 80
"""Maximum number of reads for one question. Anything still missing is left out."""


class Reader:
    """Answers one question."""

    def __init__(
        self,
        journal: Log,
        trial_of: Callable[[str], int | None],
        take_turn: Callable[[], Awaitable[None]],
        username_of: Callable[[int], str | None] = lambda _: None,
    ) -> None:
        """`trial_of` returns the trial of an allocation of which only the request exists.

        `take_turn` waits until a part of the work may be done. `username_of` returns the name of a user, None
        for an unknown one.
        """
        self._journal = journal
        self._take_turn = take_turn
        self._trial_of = trial_of
        self._reads = 0
        self._history = History(username_of)

    async def explain_state(self, subject: Subject) -> Explanation:
        """The causes of the subject's current state, newest first. Raises `Refused` (unavailable)."""
        return await self._follow_causes(lambda: current_state_events(self._history, subject))

    async def explain_event(self, recorded: Recorded) -> Explanation:
        """An event and its causes, newest first. Raises `Refused` (unavailable)."""
        self._history.add(Cause(recorded.id, recorded.position), [recorded])
        return await self._follow_causes(lambda: [recorded])

    async def _follow_causes(self, end_events: Callable[[], list[Recorded]]) -> Explanation:
        while True:
            self._history.missing.clear()
            explanation = chain(self._history, end_events())
            # What is missing is known only after each step of the chain, so it is read in rounds, all of one
            # round at once. Sorted, so that the same question has the same answer at the limit.
            wanted = sorted(self._history.missing, key=repr)[: MAX_READS - self._reads]
            if not wanted:
                return Explanation(explanation.steps, explanation.more or bool(self._history.missing))
            await self._fetch(wanted)

    async def find_deleted_experiment(self, experiment_id: int) -> Subject | None:
        """A deleted experiment, which only the log still knows; None if it never existed."""
        await self._fetch([Entity("experiment", experiment_id)])
        end = self._history.find_newest((), (searcher.ExperimentDeleted,))
        if end is None:
            return None
        id = str(experiment_id)
        return Subject(kind="experiment", id=id, state=end.event.state, experiment_id=experiment_id)

    async def message_at(self, position: int) -> Stored | None:
        """The message at a position of CONTROL, or None. Raises `Refused` (unavailable)."""
        async with _read_timeout():
            first, last = await self._journal.bounds(subjects.CONTROL)
            if not first <= position <= last:
                return None
            messages = await read_range(
                self._journal, subjects.CONTROL, after=position - 1, before=position + 1, keep=1
            )
        return messages[0] if messages else None

    async def latest_events(self, before: int | None, newest: int, where: Sequence[str]) -> Explanation:
        """The newest events before a position, oldest first, looking back a limited distance.

        The events of a rarely active owner are far apart, so each read covers twice the distance of the one
        before.
        """
        events: list[Recorded] = []
        async with _read_timeout():
            _, last = await self._journal.bounds(subjects.CONTROL)
            end = min(before or last + 1, last + 1)
            start = end - 1
            for distance in (SEARCH_WINDOW * 2**look for look in range(MAX_OWNER_READS if where else 1)):
                until, start = start + 1, max(start - distance, 0)
                # One more than is shown, to know whether there are more.
                left = newest + 1 - len(events)
                events[:0] = await self._read(
                    where, after=start, before=until, keep=left, wanted=_is_no_decision
                )
                if start == 0 or len(events) > newest:
                    break
        self._history.add(Cause("", end), events)
        explanation = newest_steps(self._history, newest)
        return Explanation(explanation.steps, start > 0 or explanation.more)

    async def timeline(self, experiment_id: int) -> list[Period]:
        """How an experiment spent its time. Raises `Refused` (unavailable)."""
        where = (*subjects.history_of_experiment(experiment_id), subjects.allocations_of(str(experiment_id)))
        async with _read_timeout():
            return timeline(await self._read(where, keep=MAX_TIMELINE_EVENTS))

    async def full_history(self, subject: Subject, before: int | None, newest: int) -> Explanation:
        """The subject's events before a position, oldest first, limited to the `newest` ones."""
        async with _read_timeout():
            events = await self._subject_events(subject, before, newest + 1)
        self._history.add(Cause("", before or 0), events)
        return newest_steps(self._history, newest)

    async def _subject_events(self, subject: Subject, before: int | None, keep: int) -> list[Recorded]:
        if subject.kind != "allocation":
            return await self._read(
                _filters(subject), before=before, keep=keep, wanted=_concerns_subject(subject)
            )
        (id,) = subject.allocation_ids
        events = await self._allocation(id)
        if subject.trial_id is not None:
            events += await self._read([subjects.decisions_about_trial(subject.trial_id)])
        run_events = [r for r in events if getattr(r.event, "allocation_id", id) == id]
        run = id.rpartition(".")[2]
        run_events = [
            r
            for r in run_events
            if hasattr(r.event, "allocation_id") or str(getattr(r.event, "run", "")) == run
        ]
        return [r for r in run_events if before is None or r.position < before]

    async def _fetch(self, missing: Sequence[Missing]) -> None:
        """Read the missing things and causes into the history."""
        self._reads += len(missing)
        async with _read_timeout():
            loaded = await asyncio.gather(*(self._load(what) for what in missing))
        for what, events in zip(missing, loaded, strict=True):
            self._history.add(what, events)
            if isinstance(what, Entity) and what.kind == "allocation":
                # After the events were added: those of a deleted run know its trial, and the catalogue does
                # not any more.
                self._history.trial_of.setdefault(str(what.id), self._trial_of(str(what.id)))

    async def _load(self, what: Missing) -> list[Recorded]:
        if isinstance(what, Cause):
            events = await self._read(
                (), after=max(what.before - CAUSE_SEARCH_DISTANCE, 0), before=what.before
            )
            return [recorded for recorded in events if recorded.id == what.id]
        match what.kind:
            case "experiment":
                return await self._read(subjects.history_of_experiment(int(what.id)))
            case "trial":
                return await self._read(subjects.history_of_trial(int(what.id)))
            case "deletions":
                return await self._read([subjects.deletions_of(int(what.id))])
            case "allocation":
                return await self._allocation(str(what.id))
            case "worker":
                return await self._read(subjects.history_of_worker(str(what.id)))
            case "pool":
                pool = str(what.id)
                return await self._read(subjects.history_of_pool(pool), wanted=_mentions_pool(pool))

    async def _allocation(self, id: str) -> list[Recorded]:
        """The scheduler's decisions about an allocation, and its workers' events while it ran."""
        events = await self._read([subjects.decisions_about_allocation(id)])
        assigned = next((r for r in events if type(r.event) is scheduler.AllocationAssigned), None)
        if assigned is None:
            return events
        hosts = {part.worker_id for part in assigned.event.parts}
        filters = [subject for host in hosts for subject in subjects.run_events_of_worker(host)]
        first, last = assigned.position, events[-1].position
        has_ended = type(events[-1].event) is scheduler.AllocationEnded
        near_start = min(first + SEARCH_WINDOW, last) if has_ended else first + SEARCH_WINDOW
        # Not all in between: a worker of a long run has thousands of events about other runs.
        windows = [(first, near_start), (max(last - SEARCH_WINDOW, first + SEARCH_WINDOW - 1), last)]
        for after, before in windows:
            if after < before:
                events += await self._read(
                    filters, after=after, before=before, wanted=_mentions_allocation(id)
                )
        return events

    async def _read(
        self,
        filters: Sequence[str],
        *,
        after: int = 0,
        before: int | None = None,
        keep: int = MAX_EVENTS_PER_ENTITY,
        wanted: Callable[[Stored], bool] = lambda _: True,
    ) -> list[Recorded]:
        newest: deque[Stored] = deque(maxlen=keep)
        reading = read_between(self._journal, subjects.CONTROL, after=after, before=before, subjects=filters)
        async with aclosing(reading) as batches:
            async for messages in batches:
                await self._take_turn()
                newest.extend(filter(wanted, messages))
        events: list[Recorded] = []
        for number, message in enumerate(newest):
            if number % PART == 0:
                await self._take_turn()
            if (recorded := decode(message)) is not None:
                events.append(recorded)
        return events


@contextlib.asynccontextmanager
async def _read_timeout() -> AsyncIterator[None]:
    """Bound the time of reads: a feed would wait for its broker forever."""
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            yield
    except READ_ERRORS as error:
        raise unavailable(f"the log cannot be read just now: {error!r}; try again") from error


def _filters(subject: Subject) -> list[str]:
    """The subjects with the whole story of a subject."""
    if subject.kind == "worker":
        return list(subjects.history_of_worker(subject.id))
    if subject.kind == "pool":
        return list(subjects.history_of_pool(subject.id))
    id = subject.experiment_id
    if subject.trial_id is None:
        return list(subjects.history_of_experiment(id))
    trial_subjects = subjects.all_events_of_trial(subject.trial_id)
    if subject.kind == "checkpoint":
        trial_subjects = (*trial_subjects, subjects.deletions_of(id))
    return [*trial_subjects, subjects.allocations_of(subject.task_id), *subjects.history_of_experiment(id)]


def _concerns_subject(subject: Subject) -> Callable[[Stored], bool]:
    """Leave out deletions of other checkpoints, and heartbeats."""
    if subject.kind == "pool":
        return _mentions_pool(subject.id)
    deletions_prefix = subjects.deletions_of(subject.experiment_id).removesuffix(">")
    mark = subject.id.encode()

    def concerns(message: Stored) -> bool:
        is_other_deletion = message.subject.startswith(deletions_prefix) and mark not in message.body
        return not is_other_deletion and not message.subject.endswith(".heartbeat")

    return concerns


def _mentions_pool(pool: str) -> Callable[[Stored], bool]:
    """Keep only the workers requested by one pool."""
    # The bodies are searched as text, since decoding thousands of events of other pools would take longer
    # than reading them.
    mark = f'"pool":"{pool}"'.encode()
    return lambda message: mark in message.body


def _is_no_decision(message: Stored) -> bool:
    """Leave out decision records, which only head batches."""
    return not message.subject.endswith(".decision")


def _mentions_allocation(allocation_id: str) -> Callable[[Stored], bool]:
    """Keep events about one allocation. Others on the same worker are not even decoded."""
    mark = allocation_id.encode()
    return lambda message: mark in message.body or message.subject.endswith(".lost")


def decode(message: Stored) -> Recorded | None:
    """Decode an event; None if it is unreadable or does not match its subject."""
    recorded = read_event(message)
    return None if type(recorded.event) is Unknown else recorded
