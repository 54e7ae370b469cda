"""Why a request waits, in one sentence for the person who waits."""

from __future__ import annotations

from services.scheduler.policy.book import Book, room_of
from services.scheduler.policy.capacity import cannot_hold, counted
from services.scheduler.policy.decide import decide
from services.scheduler.policy.group_queue import Place, place_of
from services.scheduler.policy.offers import capacity_of, claims_of
from services.scheduler.policy.records import Decision, Request


def explain(book: Book, allocation_id: str, decision: Decision | None = None) -> str:
    """Say why a waiting request has no slots.

    `decision`: what a pass over this book decides, for those who explain many. Raises KeyError when
    no request of that id waits in the book.
    """
    request = book.waiting.get(allocation_id)
    if request is None:
        raise KeyError(f"allocation {allocation_id} does not wait in this pool")
    decision = decide(book) if decision is None else decision
    return (
        _placed(decision, request)
        or _over_limit(book, request)
        or _too_large_now(book, request)
        or _beyond_fair_share(book, request)
        or _releases_under_way(decision, request)
        or _taken(book, decision, request)
        or _behind(book, decision, request)
    )


def never_fits(book: Book, *, slots: int, single_agent: bool = False) -> str:
    """Say why a request of that size can never be served by the agents of a pool, and what could be.

    Empty when it can be. Agents that are disabled or draining count too: they may be enabled again.
    """
    return cannot_hold(list(book.agents.values()), book.settings, slots, single_agent)


def _too_large_now(book: Book, request: Request) -> str:
    usable = [agent for agent in book.agents.values() if agent.open]
    if book.agents and not usable:
        return "Every agent of the resource pool is disabled, draining or out of reach."
    return cannot_hold(usable, book.settings, request.slots, request.single_agent)


def _placed(decision: Decision, request: Request) -> str:
    placed = any(p.allocation_id == request.allocation_id for p in decision.allocate)
    return "It fits and is about to start." if placed else ""


def _over_limit(book: Book, request: Request) -> str:
    room = room_of(book, request.group)
    if room is None or request.slots <= room or book.settings.type == "round_robin":
        return ""
    limit = book.group(request.group).max_slots or 0
    return (
        f"Its job may hold {counted(limit)} at once (resources.max_slots) and holds {limit - room}; "
        f"it needs {request.slots}."
    )


def _beyond_fair_share(book: Book, request: Request) -> str:
    if book.settings.type != "fair_share" or request.slots == 0:
        return ""
    claim = next(claim for claim in claims_of(book) if claim.name == request.group)
    if request.slots <= claim.offer - claim.active:
        return ""
    return (
        f"At present the fair share of its job is {claim.offer} of {counted(capacity_of(book))}, "
        f"and it holds {claim.active}; it needs {request.slots} more."
    )


def _releases_under_way(decision: Decision, request: Request) -> str:
    leaving = [r.allocation_id for r in decision.release if r.wanted_by == request.allocation_id]
    return f"It waits for {_some(leaving)} to leave, of lower rank and asked to." if leaving else ""


def _taken(book: Book, decision: Decision, request: Request) -> str:
    """Whether the agents as they are have no place for it."""
    if book.pool.fits(request):
        return ""
    if request.slots == 0:
        return "Every agent runs as many tasks without slots as it may (max_aux_containers_per_agent)."
    usable = [agent for agent in book.agents.values() if agent.open]
    empty = [max(0, agent.slots - book.used.get(agent.id, (0, 0))[0]) for agent in usable]
    total, free = sum(agent.slots for agent in usable), sum(empty)
    sentence = f"It needs {counted(request.slots)}, {free} of {total} are free"
    if request.slots <= free:
        sentence += f", at most {max(empty)} on one agent"
    asked = [id for id, running in book.leaving.items() if running.request.slots]
    asked += [release.allocation_id for release in decision.release]
    return f"{sentence}; {_some(asked)} {_was(asked)} asked to leave." if asked else f"{sentence}."


def _behind(book: Book, decision: Decision, request: Request) -> str:
    """It would fit: somebody else has the better claim."""
    placed = [p.allocation_id for p in decision.allocate]
    ahead = _ahead(book, request)
    blocked = next((r for r in ahead if r.allocation_id not in placed), None)
    if blocked is not None:
        level = f"priority {book.priority(blocked.group)}, " if book.settings.type == "priority" else ""
        return (
            f"It waits behind {blocked.allocation_id} ({level}needs {counted(blocked.slots)}), "
            f"which does not fit yet."
        )
    if ahead:
        return f"The free slots go to {_some([r.allocation_id for r in ahead])}, ahead in the queue."
    if placed:
        return f"The free slots go to {_some(placed)} in this pass."
    return "It fits, and is placed when those that were asked to leave have left."


def _ahead(book: Book, request: Request) -> list[Request]:
    """Requests that must be served before it, first one first.

    By priority those of the same kind that are not at their limit; in turns all of its own group; for
    fair shares there is no such order.
    """

    def order(rival: Request) -> tuple[int, Place]:
        return book.priority(rival.group), place_of(rival)

    def counts(rival: Request) -> bool:
        if book.settings.type != "priority":
            return book.settings.type == "round_robin" and rival.group == request.group
        room = room_of(book, rival.group)
        return (rival.slots == 0) == (request.slots == 0) and (room is None or rival.slots <= room)

    mine = order(request)
    return sorted((r for r in book.waiting.values() if counts(r) and order(r) < mine), key=order)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _was(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"
