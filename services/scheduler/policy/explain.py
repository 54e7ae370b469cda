"""Why a request waits, in one sentence for the person who waits."""

from __future__ import annotations

import msgspec

from services.scheduler.policy.fitting import Pool
from services.scheduler.policy.priority import order, room_of
from services.scheduler.policy.snapshot import Decision, Request, Snapshot


def explain(snapshot: Snapshot, decision: Decision, allocation_id: str) -> str:
    """Say why a waiting request has no slots, given what the pass over that snapshot decided.

    Raises KeyError when no request of that id waits in the snapshot.
    """
    request = next((r for r in snapshot.waiting if r.allocation_id == allocation_id), None)
    if request is None:
        raise KeyError(f"allocation {allocation_id} does not wait in this pool")
    return (
        _placed(decision, request)
        or _over_limit(snapshot, request)
        or _never_fits(snapshot, request)
        or _releases_under_way(decision, request)
        or _taken(snapshot, request)
        or _behind(snapshot, decision, request)
    )


def _placed(decision: Decision, request: Request) -> str:
    placed = any(p.allocation_id == request.allocation_id for p in decision.allocate)
    return "It fits and is about to start." if placed else ""


def _over_limit(snapshot: Snapshot, request: Request) -> str:
    room = room_of(snapshot).get(request.group, request.slots)
    if request.slots <= room:
        return ""
    limit = snapshot.group_of(request).max_slots or 0
    return (
        f"Its job may hold {_slots(limit)} at once (resources.max_slots) and holds {limit - room}; "
        f"it needs {request.slots}."
    )


def _never_fits(snapshot: Snapshot, request: Request) -> str:
    """What cannot work even when everything else has left."""
    agents = [a for a in snapshot.agents if a.open]
    if not agents:
        return _no_agents(snapshot)
    idle = [msgspec.structs.replace(a, slots_used=0, zero_slot_used=0) for a in agents]
    if Pool(idle, snapshot.settings).fit(request) is not None:
        return ""
    if request.slots == 0:
        return "No agent of the pool takes tasks without slots (max_aux_containers_per_agent is 0)."
    total, largest = sum(a.slots for a in agents), max(a.slots for a in agents)
    if request.slots > total:
        return f"It needs {_slots(request.slots)}, the whole pool has {total}."
    if request.single_agent:
        return f"It needs {_slots(request.slots)} on one agent, the largest agent has {largest}."
    sizes = ", ".join(str(a.slots) for a in sorted(agents, key=lambda a: (-a.slots, a.id))[:8])
    return (
        f"It needs {_slots(request.slots)}, more than the largest agent has: then it takes whole agents "
        f"of equal size, and {request.slots} cannot be made of these (sizes {sizes})."
    )


def _no_agents(snapshot: Snapshot) -> str:
    if not snapshot.agents:
        return "No agent is connected to the resource pool."
    return "Every agent of the resource pool is disabled, draining or out of reach."


def _releases_under_way(decision: Decision, request: Request) -> str:
    leaving = [r.allocation_id for r in decision.release if r.wanted_by == request.allocation_id]
    return f"It waits for {_some(leaving)} to leave, of lower rank and asked to." if leaving else ""


def _taken(snapshot: Snapshot, request: Request) -> str:
    """Whether the agents as they are have no place for it."""
    if Pool(snapshot.agents, snapshot.settings).fit(request) is not None:
        return ""
    agents = [a for a in snapshot.agents if a.open]
    if request.slots == 0:
        return "Every agent runs as many tasks without slots as it may (max_aux_containers_per_agent)."
    free, most = sum(a.empty for a in agents), max(a.empty for a in agents)
    sentence = f"It needs {_slots(request.slots)}, {free} of {sum(a.slots for a in agents)} are free"
    return f"{sentence}, at most {most} on one agent." if request.slots <= free else f"{sentence}."


def _behind(snapshot: Snapshot, decision: Decision, request: Request) -> str:
    """It would fit: somebody ahead in the queue has the better claim."""
    placed = {p.allocation_id for p in decision.allocate}
    ahead = _ahead(snapshot, request)
    blocked = [r for r in ahead if r.allocation_id not in placed]
    if blocked:
        first = blocked[0]
        return (
            f"It waits behind {first.allocation_id} (priority {snapshot.group_of(first).priority}, "
            f"needs {_slots(first.slots)}), which does not fit yet."
        )
    if ahead:
        return f"The free slots go to {_some([r.allocation_id for r in ahead])}, ahead in the queue."
    return "It fits, and is placed when those that were asked to leave have left."


def _ahead(snapshot: Snapshot, request: Request) -> list[Request]:
    """Requests of the same kind before it in the queue, first one first, without those at their limit."""
    room = room_of(snapshot)
    place = order(snapshot, request)
    rivals = (r for r in snapshot.waiting if (r.slots == 0) == (request.slots == 0))
    counted = (r for r in rivals if r.slots <= room.get(r.group, r.slots))
    return sorted((r for r in counted if order(snapshot, r) < place), key=lambda r: order(snapshot, r))


def _slots(count: int) -> str:
    return f"{count} slot" if count == 1 else f"{count} slots"


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
