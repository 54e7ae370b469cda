"""Computes the slots offered to each group of a fair share pool (scheduling spec, section 3, steps 2-6)."""

from __future__ import annotations

from functools import cached_property
from heapq import heapify, heappop, heappush
from math import inf
from operator import attrgetter

from services.scheduler.policy.book import Book
from services.scheduler.policy.capacity import impossible_sizes
from services.scheduler.policy.group_queue import Size

Age = tuple[float, str]
"""When a group arrived, and its name."""
Turn = tuple[int, Age]
"""In a round, groups are offered slots in the order of their demand, and of their age if that is the same."""
_BEFORE_ALL: Turn = (0, (-inf, ""))


class Claim:
    """What a group has, wants and is offered, in slots."""

    def __init__(self, book: Book, name: str, capacity: int, impossible_set: frozenset[Size]) -> None:
        group, self.queue = book.group(name), book.queues[name]
        self.name, self.weight = name, group.weight
        self.age: Age = group.registered, name
        # Requests that can never run, because they exceed their job's limit or any set of agents, must not be
        # offered slots that others could use.
        most = capacity if group.max_slots is None else min(capacity, group.max_slots)
        self.active, self.unreclaimable, wanted, self.smallest = self.queue.sums(
            capacity, most, impossible_set
        )
        demand = self.active + wanted + self.queue.expected
        self.demand = demand if group.max_slots is None else min(demand, group.max_slots)
        self.offer = self.unreclaimable
        self.closed = False
        """Whether it gave back what it could not use and gets no more."""
        # Slots that cannot be taken back are part of the group's share, and not in addition to it.
        self._advance = self.unreclaimable

    def add_offer(self, slots: int) -> int:
        """Add to the offer. Returns how much of it is new, beyond what the group was offered in advance."""
        new = max(0, slots - self._advance)
        self._advance -= slots - new
        self.offer += new
        return new

    @property
    def turn(self) -> Turn:
        """Its place in a round."""
        return self.demand, self.age

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


class Offers:
    """What a pass offers to all groups of a book."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.capacity = capacity_of(book)
        impossible_set = impossible_sizes(book)
        claims = [Claim(book, name, self.capacity, impossible_set) for name in book.queues]
        self.claims = sorted((c for c in claims if c.demand or c.active), key=attrgetter("age"))
        """The claims of all groups that have or want slots, oldest group first."""
        self._by_group = {claim.name: claim for claim in self.claims}
        self._rounds = _OfferRounds(
            self.claims, self.capacity - sum(claim.unreclaimable for claim in self.claims)
        )
        self._rounds.run()

    def claim_of(self, group: str) -> Claim | None:
        """The claim of a group; None if it neither had nor wanted slots."""
        return self._by_group.get(group)

    def new_claim_of(self, group: str) -> Claim:
        """The claim of a group that `claim_of` does not know, if it changes nothing."""
        return Claim(self._book, group, self.capacity, impossible_sizes(self._book))

    def pass_by(self, group: str) -> bool:
        """Whether a group that `claim_of` does not know gets nothing and changes no other's offer.

        False if that is not certain.
        """
        claim = self.new_claim_of(group)
        return claim.demand == 0 or self._rounds.pass_by(claim)


def offers_of(book: Book) -> Offers:
    """The offers of a pass over a book as it is."""
    facts = book.idle_pass.facts()
    return facts if isinstance(facts, Offers) else Offers(book)


def capacity_of(book: Book) -> int:
    """Slots of open agents, plus slots still held on agents that are closed or gone.

    Slots held there count for their group. If they did not, they would be taken out of the others' share.
    """
    open_agents = (agent for agent in book.agents.values() if agent.open)
    slots = {agent.id: agent.slots - agent.used_elsewhere[0] for agent in open_agents}
    held = sum(used for id, (used, _) in book.used.items() if id not in slots)
    return sum(slots.values()) + held


class _OfferRounds:
    """Offers the capacity.

    Where an offer is below every request of its group, older groups get it instead.
    """

    def __init__(self, claims: list[Claim], capacity: int) -> None:
        self._capacity = capacity
        self._largest_offer = 0
        self._reach: Turn | None = None
        """The last turn of the first round, if all slots went in it, one to each; otherwise None."""
        self._is_redistributed = False
        """Whether slots that were given back were offered to others."""
        # The claims come by age, and stay so among those of the same demand.
        self._growing = sorted((c for c in claims if not c.is_satisfied), key=attrgetter("demand"))
        self._weights = sum(claim.weight for claim in self._growing)
        self._claims = claims
        self._youth_rank = {claim.name: -number for number, claim in enumerate(claims)}

    def run(self) -> None:
        """Offer until everything usable is offered."""
        self._offer_first()
        stuck = [self._youth_rank[claim.name] for claim in self._growing if claim.is_stuck]
        heapify(stuck)
        while self._capacity <= 0 and stuck:
            youngest = self._claims[-heappop(stuck)]
            if youngest.is_stuck:
                self._weights -= youngest.weight
                self._capacity += youngest.return_surplus()
                # Of thousands that wait most were offered nothing.
                if self._capacity > 0:
                    self._is_redistributed = True
                    self._add_stuck(stuck, self._rounds())
        self._offer_leftover()

    def _offer_first(self) -> None:
        """Offer by weight, and find out how far that reached."""
        offered = self._rounds()
        if self._capacity <= 0 and self._largest_offer <= 1:
            # Nobody has two turns in the first round, and a second one begins with the first claim again.
            is_one_round = len(offered) == len({claim.name for claim in offered})
            self._reach = (offered[-1].turn if offered else _BEFORE_ALL) if is_one_round else None

    def pass_by(self, claim: Claim) -> bool:
        """Whether one more claim, which has nothing yet, would get nothing and change no other's offer."""
        if self._reach is None or claim.turn <= self._reach:
            return False
        # Its weight makes what others get at once smaller, but that was one slot, and so it remains. It then
        # closes without giving anything back, so only what was given back by others could come to it, ...
        if not self._is_redistributed:
            return True
        # ... unless it is the first to close, takes its weight out again, and cannot use what is left over.
        # Of other weights the sum may not be the same as before.
        is_youngest = claim.age > self._claims[-1].age
        is_exact = _is_exact(claim.weight) and self._has_exact_weights
        return is_youngest and is_exact and claim.smallest > self._capacity

    @cached_property
    def _has_exact_weights(self) -> bool:
        return all(_is_exact(claim.weight) for claim in self._claims)

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
        at_start, claims_visited = self._capacity, 0
        for claim in self._growing:
            claims_visited += 1
            if claim.is_satisfied:
                continue
            # At least one slot each, or a group of tiny weight would get none while larger ones still grow.
            share = max(1, int(at_start * claim.weight / self._weights)) if self._weights > 0 else 1
            offer = min(share, self._capacity, claim.demand - claim.offer)
            self._largest_offer = max(self._largest_offer, offer)
            self._capacity -= claim.add_offer(offer)
            if claim.is_satisfied:
                self._weights -= claim.weight
            if self._capacity == 0:
                break
        return claims_visited


def _is_exact(weight: float) -> bool:
    """Whether sums of a million such weights are exact, in whatever order they are made."""
    return weight % 1 == 0 and weight < 1 << 32
