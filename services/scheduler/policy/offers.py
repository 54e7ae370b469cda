"""Computes the slots offered to each group of a fair share pool (scheduling spec, section 3, steps 2-6)."""

from __future__ import annotations

from heapq import heappop, heappush

from services.scheduler.policy.book import Book
from services.scheduler.policy.capacity import impossible_sizes
from services.scheduler.policy.group_queue import Size


class Claim:
    """What a group has, wants and is offered, in slots."""

    def __init__(self, book: Book, name: str, capacity: int, impossible_set: frozenset[Size]) -> None:
        group, self.queue = book.group(name), book.queues[name]
        self.name, self.weight = name, group.weight
        self.age = group.registered, name
        # Requests that can never run, because they exceed their job's limit or any set of agents, must not be
        # offered slots that others could use.
        most = capacity if group.max_slots is None else min(capacity, group.max_slots)
        self.active, self.kept, wanted, self.smallest = self.queue.sums(capacity, most, impossible_set)
        demand = self.active + wanted + self.queue.expected
        self.demand = demand if group.max_slots is None else min(demand, group.max_slots)
        self.offer = self.kept
        self.closed = False
        """Whether it gave back what it could not use and gets no more."""
        # Slots that cannot be taken back are part of the group's share, and not in addition to it.
        self._advance = self.kept

    def add_offer(self, slots: int) -> int:
        """Add to the offer. Returns how much of it is new, beyond what the group was offered in advance."""
        new = max(0, slots - self._advance)
        self._advance -= slots - new
        self.offer += new
        return new

    @property
    def is_stuck(self) -> bool:
        """Whether it could start nothing with its offer and would stop nothing without it."""
        return not self.is_satisfied and self.offer >= self.active and self.smallest > self.offer

    @property
    def is_satisfied(self) -> bool:
        """Whether it takes no more."""
        return self.closed or self.offer >= self.demand

    def return_surplus(self) -> int:
        """Keep only what runs, and want no more. Returns the rest."""
        self.closed = True
        spare = self.offer - self.active
        self.offer = self.active
        return spare

    def take_leftover(self, slots: int) -> int:
        """Take slots that no other group can use. Returns how many."""
        taken = min(slots, self.demand - self.offer)
        self.offer += taken
        return taken


def claims_of(book: Book) -> list[Claim]:
    """The claims of all groups that have or want slots, oldest group first, with their offers."""
    capacity, impossible_set = capacity_of(book), impossible_sizes(book)
    claims = [Claim(book, name, capacity, impossible_set) for name in book.queues]
    claims = sorted((c for c in claims if c.demand or c.active), key=lambda claim: claim.age)
    _OfferRounds(claims, capacity - sum(claim.kept for claim in claims)).run()
    return claims


def capacity_of(book: Book) -> int:
    """Slots of open agents, plus slots still held on agents that are closed or gone.

    Slots held there count for their group. If they did not, they would be taken out of the others' share.
    """
    slots = {agent.id: agent.slots for agent in book.agents.values() if agent.open}
    held = sum(used for id, (used, _) in book.used.items() if id not in slots)
    return sum(slots.values()) + held


class _OfferRounds:
    """Offers the capacity.

    Where an offer is below every request of its group, older groups get it instead.
    """

    def __init__(self, claims: list[Claim], capacity: int) -> None:
        self._capacity = capacity
        self._growing = sorted((c for c in claims if not c.is_satisfied), key=lambda c: (c.demand, c.age))
        self._weights = sum(claim.weight for claim in self._growing)
        self._claims = claims
        self._youth_rank = {claim.name: -number for number, claim in enumerate(claims)}

    def run(self) -> None:
        """Offer until everything usable is offered."""
        stuck: list[int] = []
        self._rounds()
        self._add_stuck(stuck, self._growing)
        while self._capacity <= 0 and stuck:
            youngest = self._claims[-heappop(stuck)]
            if youngest.is_stuck:
                self._weights -= youngest.weight
                self._capacity += youngest.return_surplus()
                self._add_stuck(stuck, self._rounds())
        self._offer_leftover()

    def _offer_leftover(self) -> None:
        """Give what is left after all groups have given back to those it is enough for, oldest first."""
        for claim in self._claims:
            if claim.closed and 0 < claim.smallest <= self._capacity:
                self._capacity -= claim.take_leftover(self._capacity)

    def _add_stuck(self, stuck: list[int], claims: list[Claim]) -> None:
        for claim in claims:
            if claim.is_stuck:
                heappush(stuck, self._youth_rank[claim.name])

    def _rounds(self) -> list[Claim]:
        """Offer by weight, round by round, until nothing is left or nothing more is wanted.

        Returns the recipients.
        """
        touched = []
        while self._capacity > 0 and self._growing:
            offered = self._round()
            touched += self._growing[:offered]
            # Only those at the front have changed; when there is little to offer, skip the others.
            self._growing[:offered] = [claim for claim in self._growing[:offered] if not claim.is_satisfied]
        return touched

    def _round(self) -> int:
        at_start, seen = self._capacity, 0
        for claim in self._growing:
            seen += 1
            if claim.is_satisfied:
                continue
            # At least one slot each, or a group of tiny weight would get none while larger ones still grow.
            share = max(1, int(at_start * claim.weight / self._weights)) if self._weights > 0 else 1
            self._capacity -= claim.add_offer(min(share, self._capacity, claim.demand - claim.offer))
            if claim.is_satisfied:
                self._weights -= claim.weight
            if self._capacity == 0:
                break
        return seen
