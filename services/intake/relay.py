"""Moves facts from WITNESS to CONTROL: each once, in the order of WITNESS.

Which replica may do so, and how far it has come, is recorded only in CONTROL. A decision names a position of
WITNESS up to which everything is admitted or refused, and every fact carries its own position. A replica that
takes over first appends a decision: from then on the broker rejects everything fenced on an earlier one, and
what precedes the decision tells where to continue.

A few facts are sent individually, fenced on the replica's own newest decision, because an atomic batch takes
the broker many times as long as a message. Many facts are sent as one batch led by a decision.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence

import structlog

from det_contracts import codec, subjects
from det_contracts.events import Decision
from services.intake.admission import Admitted, NotAdmitted, admit
from services.intake.measures import IntakeMeasures
from services.intake.refusals import Refusals
from services.kit.cancellation import cancel_and_wait
from services.kit.jetstream_feed import READ_ERRORS
from services.kit.log import Draft, Feed, Fence, Log, LogError, LogTruncated, NotStored, Stored
from services.kit.log_budget import BURST_BYTES, BYTES_PER_S, LogBudget
from services.kit.records import read_event

ONE_BY_ONE = 32
"""Up to this many facts are sent as single messages, more of them as one batch."""
MAX_FACTS = 999
"""Maximum number of facts in a batch, besides its decision."""
BYTES = 4 * 1024 * 1024
"""Maximum size of a batch, unless a single fact is larger."""
STATED_EVERY_S = 1.0
"""Maximum time between admitting or refusing a fact and a decision that says so, in seconds."""
RENEW_EVERY_S = 3600.0
"""Maximum time without a decision, in seconds; then an empty one is appended.

Old events are removed from the log only up to the newest decision (decision 42).
"""
FORGET_AFTER = 250
"""Number of admitted facts at which they are removed from WITNESS, at the latest with the next decision."""
WORKER_SHARE = 4
"""How many times as much as a trial a worker may state a second: it speaks for many runs."""
RETRY_S = 0.2
RETRYABLE_ERRORS = (*READ_ERRORS, LogError)

log = structlog.get_logger()


class Relay:
    """One replica of the intake.

    Several may run: `is_leader` tells which one works, the fence which one may.
    """

    def __init__(
        self,
        journal: Log,
        *,
        is_leader: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        replica: str = "",
        measures: IntakeMeasures | None = None,
    ) -> None:
        self._journal = journal
        self._is_leader = is_leader
        self._clock = clock
        self._new_id = new_id
        self._replica = replica or new_id()[:8]
        self._budget = LogBudget()
        self._worker_budget = LogBudget(WORKER_SHARE)
        self._refusals = Refusals(clock)
        self._measures = measures or IntakeMeasures(subjects.INTAKE)
        self._subject = subjects.decision(subjects.INTAKE)
        self._lead = asyncio.Event()
        self.feed: Feed | None = None
        self.position = 0
        """The position in WITNESS up to which this replica knows everything to be admitted or refused."""
        self._fence = 0
        """Position in CONTROL of this replica's newest decision."""
        self._decided_to = 0
        """The position in WITNESS that this decision states."""
        self._newest_fact = 0
        """Position in CONTROL of the newest fact that `position` accounts for."""
        self._decided_at = 0.0
        self._forgotten = 0

    def on_leadership_change(self) -> None:
        """Note that leadership may have changed."""
        self._lead.set()

    async def run(self) -> None:
        """Admit facts whenever this replica leads, until cancelled. Raises `LogTruncated`."""
        while True:
            while not self._is_leader():
                await self._lead.wait()
                self._lead.clear()
            try:
                await self._relay_facts()
            except LogTruncated:
                raise
            except RETRYABLE_ERRORS as error:
                # Whether the last message was stored is unknown; the next takeover finds out.
                log.warning("intake.again", error=str(error) or repr(error))
                await asyncio.sleep(RETRY_S)

    async def _relay_facts(self) -> None:
        """Take over, then admit new facts while this replica leads."""
        await self._take_over()
        async with self._journal.read(subjects.WITNESS, after=self.position) as feed:
            self.feed = feed
            # It goes on over the time-outs below, which are only there to look at the clock.
            next_batch = asyncio.ensure_future(feed.batch())
            try:
                while self._is_leader():
                    await asyncio.wait([next_batch], timeout=STATED_EVERY_S)
                    if not self._is_leader():
                        return
                    if next_batch.done():
                        await self._admit(next_batch.result().messages)
                        next_batch = asyncio.ensure_future(feed.batch())
                    if self._since_decision() >= STATED_EVERY_S:
                        await self._record_progress()
            finally:
                self.feed = None
                await cancel_and_wait(next_batch)

    # -- taking over

    async def _take_over(self) -> None:
        before = await self._journal.last(self._subject)
        decided = read_event(before).event if before is not None else None
        if before is not None and isinstance(decided, Decision):
            self._fence, self._newest_fact, self.position = before.position, decided.seen, decided.to
        else:
            # Nothing was ever admitted: no fact so far names a position of WITNESS.
            _, self._newest_fact = await self._journal.bounds(subjects.CONTROL)
            self._fence = self.position = 0
        # Read twice, so that the decision covers everything before it, even when several replicas compete.
        await self._read_back()
        await self._decide(self.position)
        # The second reading, up to the own decision: what the previous leader still appended lies before it,
        # and the fence keeps out the rest.
        await self._read_back(self._fence)
        log.info("intake.leads", position=self.position)

    async def _read_back(self, until: int = 0) -> None:
        """Find what was admitted after what a decision covers, up to a position or to the end."""
        filters = (subjects.facts_of_trial("*"), subjects.facts_of_worker("*"), self._subject)
        async with self._journal.read(subjects.CONTROL, after=self._newest_fact, subjects=filters) as feed:
            while True:
                batch = await feed.batch()
                for message in batch.messages:
                    self.position = max(self.position, read_event(message).witness)
                    self._newest_fact = message.position
                # With a lagging broker, `caught_up` may come too early, but a given position is reached
                # reliably.
                if self._newest_fact >= until if until else batch.caught_up:
                    return

    async def _decide(self, through: int, facts: Sequence[Draft] = ()) -> None:
        """Append a decision, followed by facts. Raises `LogError`."""
        record = Decision(subjects.INTAKE, self._newest_fact, len(facts), self._replica, through)
        id = self._new_id()
        body = codec.encode(record, id=id, actor=subjects.INTAKE, at=self._clock())
        drafts = [Draft(self._subject, body, id), *facts]
        began = time.perf_counter()
        last = await self._journal.append_batch(drafts, fence=Fence(self._subject, self._fence))
        self._fence, self._decided_to = last - len(facts), through
        if facts:
            self._newest_fact = last
        self._decided_at = _now()
        self._measures.decided(len(facts), time.perf_counter() - began)

    # -- admitting

    async def _admit(self, messages: Sequence[Stored]) -> None:
        # What was admitted before this replica took over may be delivered again.
        messages = [message for message in messages if message.position > self.position]
        while messages:
            if len(messages) <= ONE_BY_ONE:
                part, messages = messages, ()
                await self._admit_singly(part)
            else:
                count = _batch_length(messages)
                part, messages = messages[:count], messages[count:]
                await self._admit_together(part)
            if self.position - self._forgotten >= FORGET_AFTER:
                await self._forget()

    async def _admit_singly(self, messages: Sequence[Stored]) -> None:
        for message in messages:
            admitted = await self._admit_checked(message)
            if admitted is not None:
                began = time.perf_counter()
                fence = Fence(self._subject, self._fence)
                # Fenced on the intake's own decision, not on the fact's subject: a replica that was replaced
                # is refused although it has decided nothing since.
                self._newest_fact = await self._journal.append_batch([admitted.draft], fence=fence)
                self._measures.decided(1, time.perf_counter() - began)
            self.position = message.position

    async def _admit_together(self, messages: Sequence[Stored]) -> None:
        facts: list[Draft] = []
        for message in messages:
            admitted = await self._admit_checked(message, facts)
            if admitted is not None:
                facts.append(admitted.draft)
        to = messages[-1].position
        try:
            await self._decide(to, facts)
        except NotStored as error:
            # None of it is stored. A broker that rejects batches at the moment may accept single messages.
            log.warning("batch.refused", facts=len(facts), reason=str(error))
            await self._admit_singly(messages)
            return
        self.position = to

    async def _admit_checked(self, message: Stored, earlier_facts: Sequence[Draft] = ()) -> Admitted | None:
        """The result for a message, given earlier ones of the same batch; None if it is refused."""
        try:
            at = self._clock()
            # First: what is not admitted anyway should cost as little as possible.
            self._check_budget(message, at)
            admitted = admit(message, at)
            if admitted.replaces is not None:
                await self._check_newest(admitted, earlier_facts)
        except NotAdmitted as error:
            self._measures.not_admitted(message.subject)
            self._refusals.say(message, str(error))
            return None
        return admitted

    def _check_budget(self, message: Stored, at: float) -> None:
        """Raise `NotAdmitted` if a sender states more than the log takes of one trial or worker."""
        sort, _, id = message.subject.partition(".")[2].partition(".")
        is_worker = sort == "worker"
        budget = self._worker_budget if is_worker else self._budget
        if not budget.spend(id, len(message.body), at):
            sender, share = (f"worker {id}", WORKER_SHARE) if is_worker else (f"the script of trial {id}", 1)
            raise NotAdmitted(
                f"{sender} has stated more than {BURST_BYTES >> 20} MiB at once, or "
                f"{share * BYTES_PER_S >> 10} KiB a second: it states facts too often, or too large ones"
            )

    async def _check_newest(self, admitted: Admitted, earlier_facts: Sequence[Draft]) -> None:
        """Raise `NotAdmitted` unless the fact replaces the newest message on its subject.

        Only the intake writes to these subjects, so what is newest now is still newest when the fact is
        stored.
        """
        subject = admitted.draft.subject
        last = await self._journal.last(subject)
        if any(fact.subject == subject for fact in earlier_facts) or admitted.replaces != (
            last.position if last else 0
        ):
            raise NotAdmitted("a newer message on its subject was admitted first")

    def _since_decision(self) -> float:
        return _now() - self._decided_at

    async def _record_progress(self) -> None:
        """Append a decision if it would state progress, and remove what was admitted from WITNESS."""
        if self.position > self._decided_to or self._since_decision() > RENEW_EVERY_S:
            await self._decide(self.position)
        if self.position > self._forgotten:
            await self._forget()

    async def _forget(self) -> None:
        # Only what is in CONTROL or was refused. The next leader finds that out in CONTROL, so WITNESS need
        # not have it.
        await self._journal.forget(subjects.WITNESS, self.position)
        self._forgotten = self.position


def _now() -> float:
    return asyncio.get_running_loop().time()


def _batch_length(messages: Sequence[Stored]) -> int:
    """How many of these messages fit into one batch; at least one."""
    size = 0
    for count, message in enumerate(messages[:MAX_FACTS]):
        size += len(message.body)
        if count and size > BYTES:
            return count
    return min(len(messages), MAX_FACTS)
