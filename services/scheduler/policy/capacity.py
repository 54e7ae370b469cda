"""What an idle pool could hold: which requests can never be served, and which sizes could be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from services.scheduler.policy.book import Book
from services.scheduler.policy.fitting import Pool, Shape
from services.scheduler.policy.group_queue import Size
from services.scheduler.policy.records import Agent, PoolSettings, Request


def explain_too_large(agents: Sequence[Agent], settings: PoolSettings, slots: int, single_agent: bool) -> str:
    """Say why these agents cannot serve a request of this size even when idle, and what they could serve.

    Returns "" if they can (scheduling spec, section 2).
    """
    if not agents:
        return "No agent is connected to the resource pool."
    # The common case, without building a pool.
    if 0 < slots <= max(agent.slots for agent in agents):
        return ""
    wanted = Request(allocation_id="", job_id="", group="", slots=slots, single_agent=single_agent)
    if idle_pool(agents, settings).fits(wanted):
        return ""
    if slots == 0:
        return "No agent of the pool takes tasks without slots (max_aux_containers_per_agent is 0)."
    return f"{_too_large_reason(agents, slots, single_agent)} {_suggest_sizes(agents, single_agent)}"


def impossible_sizes(book: Book) -> frozenset[Size]:
    """The sizes of waiting requests in a book that its open agents could not serve even when idle."""
    return frozenset(size for size in book.lanes if is_impossible(book, size))


def is_impossible(book: Book, size: Size) -> bool:
    """Whether the open agents of a book could not serve requests of this size even when idle."""
    if size not in book.impossible_by_size:
        usable = [agent for agent in book.agents.values() if agent.open]
        book.impossible_by_size[size] = bool(
            explain_too_large(usable, book.settings, size.slots, size.single_agent)
        )
    return book.impossible_by_size[size]


def idle_pool(agents: Iterable[Agent], settings: PoolSettings) -> Pool:
    """The agents as a pool with nothing running."""
    pool = Pool(settings)
    for agent in agents:
        limit = agent.max_zero_slot
        pool.put(
            agent.id,
            Shape(agent.slots, 0, settings.max_aux_containers_per_agent if limit is None else limit, 0),
        )
    return pool


def format_slots(slots: int) -> str:
    """A number of slots in words."""
    return f"{slots} slot" if slots == 1 else f"{slots} slots"


def _too_large_reason(agents: Sequence[Agent], slots: int, single_agent: bool) -> str:
    total, largest = sum(a.slots for a in agents), max(a.slots for a in agents)
    if slots > total:
        return f"It needs {format_slots(slots)}, the whole pool has {total}."
    if single_agent:
        return f"It needs {format_slots(slots)} on one agent, the largest agent has {largest}."
    sizes = ", ".join(str(slots) for slots in sorted((a.slots for a in agents), reverse=True)[:8])
    more = ", ..." if len(agents) > 8 else ""
    return (
        f"It needs {format_slots(slots)}, more than the largest agent has: then it takes whole agents "
        f"of equal size, and {slots} cannot be made of these (sizes {sizes}{more})."
    )


def _suggest_sizes(agents: Sequence[Agent], single_agent: bool) -> str:
    sizes = Counter(a.slots for a in agents if a.slots)
    if not sizes:
        return "The pool has no slots at all."
    largest = max(sizes)
    if single_agent:
        return f"What would fit: up to {format_slots(largest)}."
    # Agents of one slot make up any number, so they raise the bound instead of adding multiples.
    largest = max(largest, sizes.pop(1, 0))
    several = sorted((size for size, count in sizes.items() if size * count > largest), reverse=True)
    choices = [f"up to {format_slots(largest)}"]
    choices += [f"a multiple of {size} up to {size * sizes[size]}" for size in several[:3]]
    return f"What would fit: {' or '.join(choices)}."
