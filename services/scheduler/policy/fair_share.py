"""The fair share scheduler: groups are served side by side, by weight (scheduling spec, section 3).

First every group is offered a number of slots, then it grows or shrinks towards that number. This differs
from the specification in three points, each so that repeated passes converge:

- Slots are reserved while they are handed out, so no two requests get the same ones.
- A group whose offer is too small for any of its requests gives back only what it does not use. Taking
  everything would stop its running tasks, which would start again in the next pass.
- Slots of tasks that were already asked to exit count as released when others would have to go.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.scheduler.policy.book import Book, can_preempt, group_headroom
from services.scheduler.policy.group_queue import Size, Walk, size_of
from services.scheduler.policy.offers import Claim, Offers
from services.scheduler.policy.records import NOTHING, Decision, Placement, Release, Request


def decide(book: Book) -> Decision:
    """Run one pass over a pool."""
    assigner = _SlotAssigner(book)
    assigner.place_zero_slot()
    releases: list[Release] = []
    offers = Offers(book)
    for claim in offers.claims:
        if claim.active > claim.offer:
            releases += _release_excess(book, claim)
        elif claim.active < claim.offer:
            assigner.place_group(claim)
    decision = Decision(tuple(assigner.placements), tuple(releases))
    if decision == NOTHING:
        book.idle_pass.record(lambda request: _changes_nothing(book, offers, request), offers)
    return decision


def _release_excess(book: Book, claim: Claim) -> Iterator[Release]:
    """Ask the oldest tasks of a group to exit until the rest is within its offer."""
    # What was asked to leave will be gone, so asking further runs for the same slots would stop too
    # many.
    active = claim.active - claim.queue.leaving
    for _, running in claim.queue.running(False):
        if active <= claim.offer:
            return
        if can_preempt(book, running):
            active -= running.request.slots
            yield Release(running.request.allocation_id)


class _SlotAssigner:
    """Hands out free slots, on a copy of the agents."""

    def __init__(self, book: Book) -> None:
        self.placements: list[Placement] = []
        self._book = book
        self._pool = book.pool.copy()
        self._no_fit: set[Size] = set()

    def place_zero_slot(self) -> None:
        """Place every zero-slot request that fits: these do not compete for slots."""
        groups = {name for size, names in self._book.lanes.items() if size.slots == 0 for name in names}
        lanes = (lane for name in groups for lane in self._book.queues[name].lanes(True))
        for request in Walk((lane, 0, len(lane)) for lane in lanes):
            if not self._place(request):
                return

    def place_group(self, claim: Claim) -> None:
        """Place a group's requests in order, as far as its offer and the agents' free slots allow."""
        room = group_headroom(self._book, claim.name)
        allowed = claim.offer - claim.active
        allowed = allowed if room is None else min(allowed, room)
        walk = Walk((lane, 0, len(lane)) for lane in claim.queue.lanes(False))
        for request in walk:
            if request.slots <= allowed and self._place(request):
                allowed -= request.slots
            else:
                # All requests of a lane have the same size, so none of them fits either.
                walk.skip_lane()

    def _place(self, request: Request) -> bool:
        # Slots only shrink within a pass: what did not fit does not fit later.
        size = size_of(request)
        shares = None if size in self._no_fit else self._pool.fit(request)
        if shares is None:
            self._no_fit.add(size)
            return False
        self._pool.take(shares)
        self.placements.append(Placement(request.allocation_id, shares))
        return True


def _changes_nothing(book: Book, offers: Offers, request: Request) -> bool:
    """After a pass that decided nothing: whether one more request changes no offer and does not fit."""
    if request.slots == 0:
        return not book.pool.fits(request)
    if request.slots > offers.capacity:
        return True
    claim = offers.claim_of(request.group)
    if claim is None:
        return offers.pass_by(request.group)
    limit = book.group(request.group).max_slots
    if limit is None or claim.demand < limit:
        return False
    within = claim.smallest <= request.slots and claim.smallest > 0
    return within and (request.slots > claim.offer - claim.active or not book.pool.fits(request))
