"""Publishes each worker's current orders to the ORDERS stream, behind the fold.

Orders are derived from the folded state and are not decisions themselves. The leader rewrites any order that
differs from what the state implies. A former leader that has not yet noticed that it lost the lease is
rejected by the fence on the worker's subject.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import msgspec
import structlog

from det_contracts import subjects
from det_contracts.limits import EVENT_BYTES
from det_contracts.orders import Briefing, Gang, Standing, WorkerOrders
from services.kit.log import Draft, Fence, FenceLost, NotConfirmed
from services.kit.parts import Parts
from services.kit.rules import Key
from services.scheduler.briefing import Facts, MissingFact, gang_of, read_briefing
from services.scheduler.domain import Allocation, Member, State

CONCURRENT_WRITES = 32
"""Number of workers whose orders are written concurrently."""
BRIEFINGS_BYTES = EVENT_BYTES - 64 * 1024
"""How much of one message new briefings may take.

The rest is reserved for short entries, so that an order to end, or an answer to a worker, never waits for a
briefing.
"""
MAX_REASON_LENGTH = 500
"""Maximum length of a termination reason, in characters.

Reasons can come from other workers and are otherwise unbounded.
"""
POLL_EVERY_S = 0.5
RETRY_S = 0.2
SET_BACK_S = 5.0
"""How long orders must appear to be ahead of the log before this is believed, in seconds.

The end of a replicated stream may not be visible immediately after a replica starts to lead.
"""
WORKER_LOST_REASON = "its worker was given up for lost"
_ENCODER = msgspec.json.Encoder()

log = structlog.get_logger()
CreateConsumer = Callable[[str], Awaitable[None]]
"""Creates the consumer through which a worker reads its orders, if it does not exist."""
IssueToken = Callable[[str], str]
"""Returns the token with which a run uses the REST API."""


def parts_on(state: State, worker_id: str) -> list[tuple[Allocation, Member]]:
    """The allocations on a worker that are not over, in the order of assignment."""
    held = [state.allocations[id] for id in state.occupancy.held_on(worker_id)]
    parts = [
        (allocation, m)
        for allocation in held
        for m in allocation.members
        if m.worker_id == worker_id and not m.over
    ]
    return sorted(parts, key=lambda pair: (pair[0].assigned, pair[0].id))


def reason_to_end(allocation: Allocation, member: Member) -> str:
    """Why a part must end now, or "" if it need not."""
    return allocation.killed[:MAX_REASON_LENGTH] or (WORKER_LOST_REASON if member.lost else "")


def trim_to_message(orders: WorkerOrders, published: WorkerOrders | None) -> WorkerOrders:
    """Trim the orders to what fits in one message. Further briefings follow once earlier ones have started.

    Briefings that were already sent are kept. Otherwise the new orders would be complete only up to an
    earlier position than those in `published`, as if they came from a replica that had read less of the log.
    """
    bare = msgspec.structs.replace(orders, allocations=())
    briefed = (
        {entry.allocation_id for entry in published.allocations if entry.briefing}
        if published is not None
        else set()
    )
    size, briefings, kept_ids, position = len(_ENCODER.encode(bare)), 0, set[str](), orders.position
    for entry in sorted(
        # Entries without a briefing first: they are short, and an order to end must not wait.
        orders.allocations,
        key=lambda entry: (bool(entry.briefing), entry.allocation_id not in briefed),
    ):
        needed = len(_ENCODER.encode(entry)) + 1
        waits = entry.briefing and entry.allocation_id not in briefed and briefings + needed > BRIEFINGS_BYTES
        if waits or size + needed > EVENT_BYTES:
            # A worker ends runs that its orders, up to their position, do not contain. So they must not claim
            # to be complete beyond an entry that is left out.
            position = min(position, entry.position - 1)
            continue
        kept_ids.add(entry.allocation_id)
        size += needed
        briefings += needed if entry.briefing else 0
    kept_entries = tuple(entry for entry in orders.allocations if entry.allocation_id in kept_ids)
    return msgspec.structs.replace(orders, allocations=kept_entries, position=position)


def has_same_effect(orders: WorkerOrders, published: WorkerOrders) -> bool:
    """Whether the new orders would not make a worker do anything different from the orders it already has."""
    if (orders.session, orders.presence, orders.refused) != (
        published.session,
        published.presence,
        published.refused,
    ):
        return False
    before = {entry.allocation_id: entry for entry in published.allocations}
    return len(before) == len(orders.allocations) and all(
        (published_entry := before.get(entry.allocation_id)) is not None
        # The same id at another position is a run of a log that is gone.
        and (published_entry.position, published_entry.end, published_entry.lost)
        == (entry.position, entry.end, entry.lost)
        and (entry.briefing is None or entry.briefing == published_entry.briefing)
        and entry.problem in ("", published_entry.problem)
        for entry in orders.allocations
    )


class OrdersWriter:
    """Keeps the orders of all workers in line with the folded state while this replica leads."""

    def __init__(
        self, parts: Parts, create_consumer: CreateConsumer, issue_token: IssueToken = lambda _: ""
    ) -> None:
        self._issue_token = issue_token
        self._runner = parts.runner
        self._journal = parts.journal
        self._is_leader = parts.is_leader
        self._create_consumer = create_consumer
        self._is_active = False
        self._outdated: dict[str, None] = {}
        """Workers whose orders may be outdated, longest-waiting first."""
        self._being_written: set[str] = set()
        self._workers_of: dict[str, set[str]] = {}
        """Allocation -> workers. Also tells which workers to update when an allocation is gone."""
        self._briefings: dict[str, Briefing | str] = {}
        """Briefings of allocations that have not started everywhere, or the reason why there is none."""
        self._published: dict[str, tuple[int, WorkerOrders | None]] = {}
        """Sequence number and content of each worker's newest message in ORDERS."""
        self._unregistered: dict[str, str] = {}
        """Unregistered worker -> the session in which it sends heartbeats."""
        self._ahead_since: dict[str, float] = {}
        """Worker -> since when its orders refer to positions that CONTROL does not have."""
        self._wake = asyncio.Event()
        self._facts = Facts(parts.journal, parts.runner.decider.event_spans.span_of)
        parts.runner.add_listener(self._facts.on_folded)
        parts.saver.watch(self._on_records_changed, self._on_reload)

    def request_registration(self, worker_id: str, session: str) -> None:
        """Make an unknown worker that sends heartbeats register.

        Its registration was in a log that is gone.
        """
        if self._unregistered.get(worker_id) != session:
            self._unregistered[worker_id] = session
            self._outdated[worker_id] = None
            self._wake.set()

    def awaits_registration(self, worker_id: str) -> bool:
        """Whether an unknown worker was told to register."""
        return worker_id in self._unregistered

    def write_again(self, worker_id: str) -> None:
        """Write a worker's orders if it needs any: its former ones were removed."""
        self._published.pop(worker_id, None)
        self._outdated[worker_id] = None
        self._wake.set()

    def has_current_orders(self, worker_id: str) -> bool:
        """Whether ORDERS reflects everything that has been folded about a worker."""
        return self._is_active and worker_id not in self._outdated and worker_id not in self._being_written

    def _on_records_changed(self, keys: Collection[Key]) -> None:
        state: State = self._runner.state
        for id in [id for kind, id in keys if kind == "workers"]:
            self._outdated[id] = None
            self._unregistered.pop(id, None)
        for id in [id for kind, id in keys if kind == "allocations"]:
            self._on_allocation_changed(state, id)
        if self._outdated:
            self._wake.set()

    def _on_reload(self) -> None:
        # All that was derived from the former state is derived again, as by a replica that begins to lead.
        self._is_active = False
        self._unregistered.clear()
        self._facts.forget()
        self._wake.set()

    def _on_allocation_changed(self, state: State, id: str) -> None:
        allocation = state.allocations.get(id)
        workers = {member.worker_id for member in allocation.members} if allocation is not None else set()
        for worker_id in sorted(workers | self._workers_of.pop(id, set())):
            self._outdated[worker_id] = None
        if workers:
            self._workers_of[id] = workers
        if allocation is None or all(m.started or m.over for m in allocation.members):
            self._briefings.pop(id, None)

    async def run(self) -> None:
        """Write outdated orders until cancelled."""
        await self._runner.ready.wait()
        while True:
            with contextlib.suppress(TimeoutError):
                # Nothing wakes this loop when leadership changes.
                async with asyncio.timeout(POLL_EVERY_S):
                    await self._wake.wait()
            # Before the work, so that what changes meanwhile starts another round.
            self._wake.clear()
            if not self._is_leader():
                # All of it is found again once this replica leads.
                self._is_active = False
                self._outdated.clear()
                self._unregistered.clear()
                continue
            if not self._is_active:
                self._start_leading()
            if self._outdated:
                await self._write_all()

    def _start_leading(self) -> None:
        """Discard what is cached: another replica may have written orders until now."""
        state: State = self._runner.state
        self._is_active = True
        self._published.clear()
        self._workers_of.clear()
        self._briefings.clear()
        self._outdated.update(dict.fromkeys(state.workers))
        for allocation in state.allocations.values():
            if allocation.members:
                self._workers_of[allocation.id] = {member.worker_id for member in allocation.members}

    async def _write_all(self) -> None:
        while self._outdated and self._is_leader():
            batch = list(self._outdated)[:CONCURRENT_WRITES]
            for worker_id in batch:
                del self._outdated[worker_id]
            self._being_written = set(batch)
            try:
                done = await asyncio.gather(*(self._write(worker_id) for worker_id in batch))
            finally:
                self._being_written = set()
            failed = [worker_id for worker_id, written in zip(batch, done, strict=True) if not written]
            if failed:
                self._outdated.update(dict.fromkeys(failed))
                await asyncio.sleep(RETRY_S)

    async def _write(self, worker_id: str) -> bool:
        """Write one worker's orders if they are outdated. Returns whether they were written."""
        try:
            sequence, published = await self._newest_orders(worker_id)
            if published is not None and await self._is_from_lost_log(worker_id, published):
                published = None
            orders = await self._build_orders(worker_id, published)
            if orders is None:
                # Workers of a pool that grows and shrinks never return under the same id.
                self._published.pop(worker_id, None)
                self._ahead_since.pop(worker_id, None)
                return True
            # Positions alone change with every event of the cluster. Writing for that would store a message
            # per worker each time.
            if published is not None and has_same_effect(orders, published):
                return True
            if published is not None and published.position > orders.position:
                # Another replica that has read further has written them, or so it appears for now.
                return False
            # The consumer is the worker's only way to read its orders, so it must exist before the first ones
            # of a session.
            if published is None or published.session != orders.session:
                await self._create_consumer(worker_id)
            subject = subjects.orders(worker_id)
            # A new id each time: equal orders may have to be written again after others, and the broker drops
            # an id that it knows.
            draft = Draft(subject, _ENCODER.encode(orders), uuid.uuid4().hex)
            # Fenced on the newest orders: of two replicas that both believe to lead, only one replaces them.
            sequence = await self._journal.append_batch([draft], fence=Fence(subject, sequence))
            self._published[worker_id] = sequence, orders
            return True
        except (FenceLost, NotConfirmed) as error:
            # Whether it was stored is unknown. The next attempt reads the newest orders from the log.
            self._published.pop(worker_id, None)
            log.warning("orders.again", worker=worker_id, error=str(error))
            return False

    async def _is_from_lost_log(self, worker_id: str, published: WorkerOrders) -> bool:
        """Whether the orders follow from a log that is gone: CONTROL was restored, but ORDERS was not.

        What these orders describe never happened. No other replica would rewrite them, because they appear to
        come from one that has read further.
        """
        if published.position <= self._runner.positions[subjects.CONTROL]:
            self._ahead_since.pop(worker_id, None)
            return False
        _, last = await self._journal.bounds(subjects.CONTROL)
        now = asyncio.get_running_loop().time()
        if published.position <= last:
            self._ahead_since.pop(worker_id, None)
            return False
        if now - self._ahead_since.setdefault(worker_id, now) < SET_BACK_S:
            return False
        log.warning("orders.of_a_later_log", worker=worker_id, orders_at=published.position, log_ends=last)
        return True

    async def _newest_orders(self, worker_id: str) -> tuple[int, WorkerOrders | None]:
        newest_orders = self._published.get(worker_id)
        if newest_orders is None:
            stored = await self._journal.last(subjects.orders(worker_id))
            newest_orders = (0, None) if stored is None else (stored.position, decode_orders(stored.body))
            self._published[worker_id] = newest_orders
        return newest_orders

    async def _build_orders(self, worker_id: str, published: WorkerOrders | None) -> WorkerOrders | None:
        state: State = self._runner.state
        worker, position = state.workers.get(worker_id), self._runner.positions[subjects.CONTROL]
        if worker is None:
            session = self._unregistered.get(worker_id, "")
            empty_orders = WorkerOrders(
                worker_id=worker_id, position=position, session=session, presence="lost", allocations=()
            )
            return empty_orders if session else None
        parts = parts_on(state, worker_id)
        missing_briefings = {
            a.id: gang_of(state, a) for a, m in parts if not m.started and not reason_to_end(a, m)
        }
        briefings = dict(
            zip(
                missing_briefings,
                await asyncio.gather(
                    *map(self._load_briefing, missing_briefings, missing_briefings.values())
                ),
                strict=True,
            )
        )
        standing = [
            _build_standing(allocation, member, briefings.get(allocation.id)) for allocation, member in parts
        ]
        return trim_to_message(
            WorkerOrders(
                worker_id=worker_id,
                position=position,
                session=worker.session,
                presence=worker.presence,
                host=worker.host,
                address=worker.address,
                refused=worker.refused,
                allocations=tuple(standing),
            ),
            published,
        )

    async def _load_briefing(self, id: str, gang: Gang) -> Briefing | str:
        if id in self._briefings:
            return self._briefings[id]
        briefing: Briefing | str
        try:
            briefing = await read_briefing(self._facts, id, gang)
            briefing = msgspec.structs.replace(briefing, token=self._issue_token(id))
        except MissingFact as error:
            briefing = str(error)
        # It may have ended while the briefing was read. Nothing would remove it from here then.
        if id in self._runner.state.allocations:
            self._briefings[id] = briefing
        return briefing


def _build_standing(allocation: Allocation, member: Member, briefing: Briefing | str | None) -> Standing:
    more: dict[str, Any] = {"problem": briefing} if isinstance(briefing, str) else {"briefing": briefing}
    standing = Standing(
        allocation_id=allocation.id,
        position=allocation.assigned,
        end=reason_to_end(allocation, member),
        lost=member.lost,
        **more,
    )
    if len(_ENCODER.encode(standing)) < BRIEFINGS_BYTES:
        return standing
    return msgspec.structs.replace(
        standing, briefing=None, problem="the description of what to run is too large for one message"
    )


def decode_orders(body: bytes) -> WorkerOrders | None:
    """Return the orders in a message; None if another version wrote them."""
    try:
        return msgspec.json.decode(body, type=WorkerOrders)
    except msgspec.MsgspecError:
        return None
