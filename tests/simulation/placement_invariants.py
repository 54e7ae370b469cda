"""What must hold of slots, quotas, workers and pools before an event."""

from tests.simulation.provisioner import MOST


def holds_no_slot_twice(ledger, event, stated):
    for part in event.parts:
        for slot in part.slots:
            holder = ledger.slots.get((part.worker_id, slot))
            if holder is not None:
                return f"slot {slot} of {part.worker_id} is held by {holder}"
    return None


def places_the_whole_gang(ledger, event, stated):
    allocation = ledger.allocations[event.allocation_id]
    slots = sum(len(part.slots) for part in event.parts)
    if slots != allocation.slots or not event.parts:
        return f"it asks for {allocation.slots} slots and is given {slots}"
    workers = [part.worker_id for part in event.parts]
    if len(set(workers)) < len(workers) or [p.rank for p in event.parts] != list(range(len(workers))):
        return f"its parts are {event.parts}"
    return None


def places_only_where_there_is_room(ledger, event, stated):
    allocation = ledger.allocations[event.allocation_id]
    pool = ledger.pool_at(allocation, stated.folded)
    for part in event.parts:
        host = ledger.workers_at(part.worker_id, stated.folded)
        if host is None or host.presence != "here" or host.pool != pool:
            return f"worker {part.worker_id} is not there for it: {host}"
        for slot in (*part.slots, None):
            if slot is not None and slot not in host.slots:
                return f"worker {part.worker_id} has no slot {slot}"
            enabled = ledger.switch_at(part.worker_id, slot, stated.folded)
            if not enabled:
                return f"slot {slot} of worker {part.worker_id} takes no new work"
    return None


def keeps_to_quotas(ledger, event, stated):
    """An admitted allocation fits every quota, by what was known then and all earlier decisions."""
    allocation = ledger.allocations[event.allocation_id]
    if not allocation.slots:
        return None
    for holder in ledger.holders_at(allocation, stated.folded):
        quota = ledger.quota_at(holder, stated.folded)
        if quota is None:
            continue
        others = [a for a in ledger.allocations.values() if a.parts and not a.outcome and a is not allocation]
        held = sum(a.slots for a in others if holder in ledger.holders_at(a, stated.folded))
        if held + allocation.slots > quota:
            return f"{holder} holds {held} and takes {allocation.slots} more, its quota is {quota}"
        ledger.count("placed within a quota")
    return None


def is_waiting(ledger, event, stated):
    allocation = ledger.allocations.get(event.allocation_id)
    if allocation is None or allocation.parts or allocation.outcome:
        return f"it does not wait: {allocation}"
    return None


def is_not_over(ledger, event, stated):
    allocation = ledger.allocations.get(event.allocation_id)
    return f"the allocation is over: {allocation}" if allocation is None or allocation.outcome else None


def asks_for_no_more_than_it_may(ledger, event, stated):
    """A pool never exceeds its maximum of workers, including those on their way in or out."""
    there = [id for id, pool in ledger.requested_workers.items() if pool == event.pool]
    return f"it has {there} already" if len(there) >= MOST else None


def gives_nothing_to_who_is_given_back(ledger, event, stated):
    """A worker that is being returned gets no more work."""
    for part in event.parts:
        since = ledger.given_back.get(part.worker_id)
        if since is not None and since <= stated.folded:
            return f"{part.worker_id} was given back at {since}"
    return None


def nobody_works_there(ledger, event, stated):
    """A worker that is returned for lack of work has none, not even from the same decision."""
    if "max_idle_agent_period" not in event.reason:
        return None
    held = [
        allocation.id
        for allocation in ledger.allocations.values()
        if not allocation.outcome and any(part.worker_id == event.worker_id for part in allocation.parts)
    ]
    return f"{held} hold shares of it" if held else None


def is_not_there(ledger, event, stated):
    """Nothing is left of a dismissed worker."""
    host = ledger.workers_at(event.worker_id, stated.folded)
    return f"it is here: {host}" if host is not None and host.presence == "here" else None
