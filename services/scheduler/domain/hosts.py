"""How events change workers and their slots."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import scheduler, worker
from det_contracts.events.worker import is_about_session, is_different_worker, remember_session
from services.scheduler.domain import provisioned
from services.scheduler.domain.records import Allocation, Member, Presence, Switch, Worker
from services.scheduler.domain.state import Key, State

replace = msgspec.structs.replace


def registered(state: State, recorded: Recorded) -> Iterable[Key]:
    """Fold the registration of a new or returning worker.

    Parts that it no longer holds, or that ran on slots it no longer offers, are lost.
    """
    event: worker.WorkerRegistered = recorded.event
    stored_worker = state.workers.get(event.worker_id)
    sessions = stored_worker.sessions if stored_worker is not None else ()
    if event.session in sessions:
        return
    # Of refused ones, too: a repeat may come when the known worker is gone.
    sessions = remember_session(sessions, event.session)
    if (
        stored_worker is not None
        and stored_worker.presence == "here"
        and is_different_worker(event, stored_worker.instance, stored_worker.host)
    ):
        # The known worker stays: its orders will name the refused session, so that the other one hears of
        # it (decision 4).
        yield from state.put_worker(replace(stored_worker, refused=event.session, sessions=sessions))
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
            sessions=sessions,
            pool=event.pool,
            address=event.address,
            version=event.version,
            slots=event.slots,
            registered_at=recorded.at,
            switch=stored_worker.switch if stored_worker else Switch(),
            slot_switches=stored_worker.slot_switches if stored_worker else {},
            # Permanent: an engine may start the worker late or twice, when the pool no longer knows it.
            released=provisioned.is_released(state, event.worker_id)
            or (stored_worker is not None and stored_worker.released),
            shrunk=stored_worker is not None
            and (stored_worker.shrunk or any(s.id not in offered for s in stored_worker.slots)),
        )
    )
    running_ids = set(event.running)
    # A worker with another folder or on another host knows nothing about the parts that ran before.
    is_same_folder = stored_worker is None or stored_worker.instance == event.instance
    for id in state.occupancy.held_on(event.worker_id):
        allocation = state.allocations[id]
        # What was assigned behind that position the worker has not read yet: it will still start it.
        not_reported = id not in running_ids and allocation.assigned <= event.reads_after
        if not_reported or not _slots_on(allocation, event.worker_id) <= offered:
            yield from _mark_lost(state, allocation, event.worker_id, over=not_reported and is_same_folder)
    yield from provisioned.refresh_worker(state, event.worker_id, recorded.at)


def left_or_lost(state: State, recorded: Recorded) -> Iterable[Key]:
    """A worker left or was declared lost; its parts are lost."""
    event: scheduler.WorkerLost | worker.WorkerLeft = recorded.event
    stored_worker = state.workers.get(event.worker_id)
    # Either may still be under way when the same worker has been started again.
    if stored_worker is None or not is_about_session(event, stored_worker.session):
        return
    left = isinstance(event, worker.WorkerLeft)
    presence: Presence = "left" if left else "lost"
    yield from state.put_worker(replace(stored_worker, presence=presence, gone_at=recorded.at))
    for id in state.occupancy.held_on(stored_worker.id):
        yield from _mark_lost(state, state.allocations[id], stored_worker.id, over=left)
    yield from provisioned.refresh_worker(state, stored_worker.id, recorded.at)


def forgotten(state: State, recorded: Recorded) -> Iterable[Key]:
    """Forget a worker that has been away for long, unless it has come back in the meantime."""
    stored_worker = state.workers.get(recorded.event.worker_id)
    if stored_worker is None or stored_worker.presence == "here":
        return
    del state.workers[stored_worker.id]
    state.workers_in.discard(stored_worker.pool, stored_worker.id)
    state.absent_workers.discard(stored_worker.known_until, stored_worker.id)
    state.occupancy.drop_worker(stored_worker.id)
    state.index.drop_worker(stored_worker.id)
    yield "workers", stored_worker.id


def switched(state: State, recorded: Recorded) -> Iterable[Key]:
    """A person enabled or disabled a worker."""
    event: scheduler.WorkerSwitched = recorded.event
    stored_worker = state.workers.get(event.worker_id)
    if stored_worker is not None:
        yield from _put_switched(state, replace(stored_worker, switch=Switch(event.enabled, event.draining)))
        yield from provisioned.refresh_worker(state, stored_worker.id, recorded.at)


def slot_switched(state: State, recorded: Recorded) -> Iterable[Key]:
    """A person enabled or disabled a slot."""
    event: scheduler.SlotSwitched = recorded.event
    stored_worker = state.workers.get(event.worker_id)
    if stored_worker is not None:
        switches = stored_worker.slot_switches | {event.slot_id: Switch(event.enabled, event.draining)}
        yield from _put_switched(state, replace(stored_worker, slot_switches=switches))


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
