"""How many slots fall to each group of a fair share pool (scheduling spec, section 3, steps 2 to 6)."""

from __future__ import annotations

from services.scheduler.policy.book import Book
from services.scheduler.policy.group_queue import GroupQueue


class Claim:
    """What a group has, what it wants, and what it is offered; in slots."""

    def __init__(self, book: Book, name: str, queue: GroupQueue, capacity: int) -> None:
        group = book.group(name)
        self.name, self.queue, self.weight = name, queue, group.weight
        self.age = group.registered, name
        self.active = sum(held for size, held in queue.active.items() if size <= capacity)
        self.kept = sum(held for size, held in queue.fixed.items() if size <= capacity)
        """The part of `active` that cannot be asked back."""
        waiting = {size: count for size, count in queue.sizes().items() if size <= capacity}
        wanted = self.active + sum(size * count for size, count in waiting.items())
        self.demand = wanted if group.max_slots is None else min(wanted, group.max_slots)
        self.smallest = min(waiting, default=0)
        """The smallest request that waits; 0 when none does."""
        self.offer = self.kept
        self._ahead = self.kept

    def take(self, slots: int) -> int:
        """Add to the offer; returns how much of it is new, beyond what it was offered ahead of others."""
        new = max(0, slots - self._ahead)
        self._ahead -= slots - new
        self.offer += new
        return new

    @property
    def stuck(self) -> bool:
        """Whether it could start nothing with its offer, and would stop nothing without."""
        return self.offer >= self.active and self.smallest > self.offer and self.offer < self.demand

    def give_back(self) -> int:
        """Keep only what runs; returns the rest."""
        spare = self.offer - self.active
        self.offer = self.active
        return spare


def claims_of(book: Book) -> list[Claim]:
    """The claims of all groups that have or want slots, oldest group first, with their offers."""
    capacity = capacity_of(book)
    claims = [Claim(book, name, queue, capacity) for name, queue in book.queues.items()]
    claims = sorted((c for c in claims if c.demand or c.active), key=lambda claim: claim.age)
    _fill(claims, capacity - sum(claim.kept for claim in claims))
    return claims


def capacity_of(book: Book) -> int:
    """Slots of enabled agents; a draining agent counts only those in use."""
    total = 0
    for agent in book.agents.values():
        if agent.open:
            total += agent.slots
        elif agent.enabled:
            total += book.used.get(agent.id, (0, 0))[0]
    return total


def _fill(claims: list[Claim], capacity: int) -> None:
    """Offer the capacity; where it ends below any request of a group, the older ones have it instead."""
    growing = sorted((c for c in claims if c.offer < c.demand), key=lambda c: (c.demand, c.age))
    while growing:
        capacity = _rounds(growing, capacity)
        youngest = max((c for c in growing if c.stuck), key=lambda c: c.age, default=None)
        if capacity > 0 or youngest is None:
            return
        growing.remove(youngest)
        capacity += youngest.give_back()


def _rounds(growing: list[Claim], capacity: int) -> int:
    """Offer by weight, round by round, until all is offered or nobody wants more; returns what is left."""
    while capacity > 0 and growing:
        at_start, weights = capacity, sum(claim.weight for claim in growing)
        for claim in growing:
            share = max(1, int(at_start * claim.weight / weights)) if weights > 0 else 1
            capacity -= claim.take(min(share, capacity, claim.demand - claim.offer))
            if claim.offer == claim.demand:
                weights -= claim.weight
            if capacity == 0:
                break
        growing[:] = [claim for claim in growing if claim.offer < claim.demand]
    return capacity
