"""Folds events about workers."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import scheduler, worker
from det_contracts.events.worker import is_about_session
from services.catalogue.domain.small_records import Switch
from services.catalogue.domain.state import State, Worker
from services.kit.rules import Key

replace = msgspec.structs.replace


def registered(state: State, recorded: Recorded) -> Iterable[Key]:
    """A worker registered. One that returns keeps its switches."""
    event: worker.WorkerRegistered = recorded.event
    connected = state.workers.get(event.worker_id)
    previous = connected or state.away.get(event.worker_id)
    sessions = previous.sessions if previous is not None else ()
    if event.session in sessions:
        return
    sessions = worker.remember_session(sessions, event.session)
    if connected is not None and worker.is_different_worker(event, connected.instance, connected.host):
        state.workers[event.worker_id] = replace(connected, sessions=sessions)
        yield "workers", event.worker_id
        return
    state.away.pop(event.worker_id, None)
    state.workers[event.worker_id] = Worker(
        id=event.worker_id,
        instance=event.instance,
        host=event.host,
        session=event.session,
        sessions=sessions,
        pool=event.pool,
        address=event.address,
        version=event.version,
        slots=event.slots,
        launcher=event.launcher,
        limits=event.limits,
        registered_at=recorded.at,
        switch=previous.switch if previous else Switch(),
        slot_switches=previous.slot_switches if previous else {},
    )
    yield "workers", event.worker_id
    yield "away", event.worker_id


def left(state: State, recorded: Recorded) -> Iterable[Key]:
    """A worker left or was lost."""
    event: scheduler.WorkerLost | worker.WorkerLeft = recorded.event
    id = event.worker_id
    worker_record = state.workers.get(id)
    # It may come late or twice, when the worker is in its next session, or from another worker that wanted
    # the id.
    if worker_record is None or not is_about_session(event, worker_record.session):
        return
    del state.workers[id]
    why = "it was stopped" if isinstance(event, worker.WorkerLeft) else event.reason
    state.away[id] = replace(worker_record, gone_at=recorded.at, gone_why=why)
    yield "workers", id
    yield "away", id


def forgotten(state: State, recorded: Recorded) -> Iterable[Key]:
    """A worker that was away for long was forgotten."""
    id = recorded.event.worker_id
    if state.away.pop(id, None) is not None:
        yield "away", id


def switched(state: State, recorded: Recorded) -> Iterable[Key]:
    """A worker was enabled or disabled."""
    event: scheduler.WorkerSwitched = recorded.event
    worker_record = state.workers.get(event.worker_id)
    if worker_record is not None:
        state.workers[worker_record.id] = replace(worker_record, switch=Switch(event.enabled, event.draining))
        yield "workers", worker_record.id


def slot_switched(state: State, recorded: Recorded) -> Iterable[Key]:
    """A slot was enabled or disabled."""
    event: scheduler.SlotSwitched = recorded.event
    worker_record = state.workers.get(event.worker_id)
    if worker_record is not None:
        switches = worker_record.slot_switches | {event.slot_id: Switch(event.enabled, event.draining)}
        state.workers[worker_record.id] = replace(worker_record, slot_switches=switches)
        yield "workers", worker_record.id
