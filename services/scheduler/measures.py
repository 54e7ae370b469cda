"""Metrics of the scheduler's state, for operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from services.kit.process_metrics import Reading
from services.scheduler.domain import State, Worker


def readings(state: State) -> Iterable[Reading]:
    """Slots, queues and workers of each pool."""
    yield Reading("slots", "Slots of workers that are here", ("pool", "state"), _slots(state))
    gate = state.index.gate
    gate.update_books()
    waiting = {
        (pool,): len(book.waiting) + sum(1 for _ in gate.not_admitted(pool))
        for pool, book in state.index.books.items()
    }
    yield Reading("queue_length", "Requests that wait for slots", ("pool",), waiting)
    running = {(pool,): len(book.running) for pool, book in state.index.books.items()}
    yield Reading("allocations_running", "Requests that hold slots", ("pool",), running)
    workers = Counter((worker.pool, worker.presence) for worker in state.workers.values())
    yield Reading("workers", "Workers by presence", ("pool", "presence"), workers)


def _slots(state: State) -> Counter[tuple[str, str]]:
    slot_counts = Counter[tuple[str, str]]()
    for pool in state.pools:
        slot_counts.update({(pool, kind): 0 for kind in ("used", "free", "disabled")})
    for worker in state.workers.values():
        if worker.presence == "here":
            for slot, taken in _slots_in_use(state, worker).items():
                usable = worker.switch.open and worker.slot_switch(slot).open
                slot_counts[worker.pool, "used" if taken else "free" if usable else "disabled"] += 1
    return slot_counts


def _slots_in_use(state: State, worker: Worker) -> dict[int, bool]:
    taken = state.occupancy.taken_on(worker.id)
    return {slot.id: slot.id in taken for slot in worker.slots}
