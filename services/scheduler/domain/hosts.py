"""How events change workers and their slots."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import scheduler, worker
from det_contracts.events.worker import is_different_worker
from services.scheduler.domain import provisioned
from services.scheduler.domain.records import Allocation, Member, Presence, Switch, Worker
from services.scheduler.domain.state import Key, State

replace = msgspec.structs.replace


def registered(state: State, recorded: Recorded) -> Iterable[Key]:
    """Fold the registration of a new or returning worker.

    Parts that it no longer holds, or that ran on slots it no longer offers, are lost.
    """
    event: worker.WorkerRegistered = recorded.event
    known = state.workers.get(event.worker_id)
    if (
        known is not None
        and known.presence == "here"
        and is_different_worker(event, known.instance, known.host)
    ):
        # The known worker stays: its orders will name the refused session, so that the other one hears of
        # it (decision 4).
        yield from state.put_worker(replace(known, refused=event.session))
        return
    offered = {slot.id for slot in event.slots}
    # First, because it creates a pool that is named here for the first time, and the index looks its
    # book up.
    yield from state.touch_pool(event.pool)
    yield from state.put_worker(
        Worker(
            id=event.worker_id,
            instance=event.instance,
            host=event.host,
            session=event.session,
            pool=event.pool,
            address=event.address,
            version=event.version,
            slots=event.slots,
            registered_at=recorded.at,
            switch=known.switch if known else Switch(),
            slot_switches=known.slot_switches if known else {},
            # Permanent: an engine may start the worker late or twice, when the pool no longer knows it.
            released=provisioned.is_released(state, event.worker_id)
            or (known is not None and known.released),
            shrunk=known is not None and (known.shrunk or any(s.id not in offered for s in known.slots)),
        )
    )
    kept = set(event.running)
    # A worker with another folder or on another host knows nothing about the parts that ran before.
    is_same_folder = known is None or known.instance == event.instance
    for id in state.occupancy.held_on(event.worker_id):
        allocation = state.allocations[id]
        # What was assigned behind that position the worker has not read yet: it will still start it.
        not_reported = id not in kept and allocation.assigned <= event.reads_after
        if not_reported or not _slots_on(allocation, event.worker_id) <= offered:
            yield from _mark_lost(state, allocation, event.worker_id, over=not_reported and is_same_folder)
    yield from provisioned.refresh_worker(state, event.worker_id, recorded.at)


def left_or_lost(state: State, recorded: Recorded) -> Iterable[Key]:
    """A worker left or was declared lost; its parts are lost."""
    event: scheduler.WorkerLost | worker.WorkerLeft = recorded.event
    known = state.workers.get(event.worker_id)
    # A goodbye may still be under way when the same worker has been started again.
    if known is None or (isinstance(event, worker.WorkerLeft) and event.session != known.session):
        return
    left = isinstance(event, worker.WorkerLeft)
    presence: Presence = "left" if left else "lost"
    yield from state.put_worker(replace(known, presence=presence, gone_at=recorded.at))
    for id in state.occupancy.held_on(known.id):
        yield from _mark_lost(state, state.allocations[id], known.id, over=left)
    yield from provisioned.refresh_worker(state, known.id, recorded.at)


def forgotten(state: State, recorded: Recorded) -> Iterable[Key]:
    """Forget a worker that has been away for long, unless it has come back in the meantime."""
    known = state.workers.get(recorded.event.worker_id)
    if known is None or known.presence == "here":
        return
    del state.workers[known.id]
    state.workers_in.discard(known.pool, known.id)
    state.absent_workers.discard(known.known_until, known.id)
    state.occupancy.drop_worker(known.id)
    state.index.drop_worker(known.id)
    yield "workers", known.id


def switched(state: State, recorded: Recorded) -> Iterable[Key]:
    """A person enabled or disabled a worker."""
    event: scheduler.WorkerSwitched = recorded.event
    known = state.workers.get(event.worker_id)
    if known is not None:
        yield from _put_switched(state, replace(known, switch=Switch(event.enabled, event.draining)))
        yield from provisioned.refresh_worker(state, known.id, recorded.at)


def slot_switched(state: State, recorded: Recorded) -> Iterable[Key]:
    """A person enabled or disabled a slot."""
    event: scheduler.SlotSwitched = recorded.event
    known = state.workers.get(event.worker_id)
    if known is not None:
        switches = known.slot_switches | {event.slot_id: Switch(event.enabled, event.draining)}
        yield from _put_switched(state, replace(known, slot_switches=switches))


def _put_switched(state: State, changed: Worker) -> Iterable[Key]:
    yield from state.put_worker(changed)
    for id in state.occupancy.held_on(changed.id):
        # They may hold slots that are closed now, and must end then (`steps._disabled_reason`).
        yield "allocations", id


def _slots_on(allocation: Allocation, worker_id: str) -> set[int]:
    return {slot for m in allocation.members if m.worker_id == worker_id for slot in m.slots}


def _mark_lost(state: State, allocation: Allocation, worker_id: str, *, over: bool) -> Iterable[Key]:
    """Mark the part on this worker as lost.

    `over` says that nothing of it runs any more; without a fence there is nothing to wait for, so the part is
    always over.
    """
    over = over or not allocation.fence_s

    def marked(member: Member) -> Member:
        lost = member.worker_id == worker_id and not member.over
        return replace(member, over=over, lost=True) if lost else member

    members = tuple(marked(member) for member in allocation.members)
    return state.put_allocation(replace(allocation, members=members)) if members != allocation.members else ()
