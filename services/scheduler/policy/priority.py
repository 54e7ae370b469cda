"""The priority scheduler: smaller numbers go first and, if so configured, may preempt others.

Source: scheduling spec, section 4. Zero-slot tasks and tasks with slots do not compete, so each kind has a
pass of its own. A group at its `max_slots` waits without blocking others. Runs already asked to exit count as
released: a blocked request takes their slots first, and no request behind it takes them in the meantime.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from services.scheduler.policy.book import Book, group_headroom
from services.scheduler.policy.fitting import Pool
from services.scheduler.policy.group_queue import Size, Slice, Walk, size_of
from services.scheduler.policy.records import NOTHING, Decision, Placement, Release, Request, Running, Share
from services.scheduler.policy.victims import Rank, Victims


def decide(book: Book) -> Decision:
    """Run one pass over a pool."""
    with_slots, without = (_Pass(book, zero_slot=kind) for kind in (False, True))
    with_slots.run()
    without.run()
    decision = Decision(
        tuple(with_slots.placements + without.placements),
        tuple(with_slots.releases.values()) + tuple(without.releases.values()),
    )
    if decision == NOTHING:
        book.idle_pass.record(
            lambda request: (with_slots if request.slots else without).changes_nothing(request)
        )
    return decision


class _Pass:
    """One pass over requests of one kind, on a copy of the agents."""

    def __init__(self, book: Book, *, zero_slot: bool) -> None:
        self.placements: list[Placement] = []
        self.releases: dict[str, Release] = {}
        self._book = book
        self._zero_slot = zero_slot
        self._preemption = book.settings.preemption
        self._mixed = book.settings.allow_heterogeneous_fits
        self._pool = book.pool.copy()
        self._taken: Counter[str] = Counter()
        self._blocked_at: int | None = None
        self._victims = Victims(book, zero_slot)
        # Within a pass, slots only shrink until something is released, and a later request may preempt no
        # more than an earlier one. So a size that did not fit need not be tried again before a release, and
        # one that found no victims need not be tried again at all. This does not hold for greedy mixes of
        # agents, where a smaller pool can succeed: there every change of the pool clears both sets.
        self._no_fit: set[Size] = set()
        self._hopeless: dict[Size, Rank] = {}

    def run(self) -> None:
        """Go through the priority levels that have requests, most urgent first."""
        for priority in sorted(self._book.levels):
            self._run_level(priority)
            if self._blocked_at is not None and not self._preemption:
                return

    def changes_nothing(self, request: Request) -> bool:
        """After a pass that decided nothing: whether it would still decide nothing with this request."""
        priority, room = self._book.priority(request.group), group_headroom(self._book, request.group)
        if room is not None and request.slots > room:
            return True
        if not self._preemption:
            blocked = self._blocked_at is not None and self._blocked_at < priority
            return blocked or not self._book.pool.fits(request)
        if self._mixed or self._book.leaving or self._book.pool.fits(request):
            return False
        hopeless_rank = self._hopeless.get(size_of(request))
        rank = priority, request.position
        return (hopeless_rank is not None and hopeless_rank <= rank) or not self._victims.any_behind(rank)

    def _run_level(self, priority: int) -> None:
        queues = (self._book.queues[name] for _, name in self._book.levels[priority])
        lanes = [lane for queue in queues for lane in queue.lanes(self._zero_slot)]
        if not lanes:
            return
        fitting, blocked = self._try_to_place((lane, 0, len(lane)) for lane in lanes)
        if not self._victims.taken:
            self._allocate(fitting)
        if blocked and self._blocked_at is None:
            self._blocked_at = priority
        if self._preemption:
            self._make_room(blocked)

    def _try_to_place(self, slices: Iterable[Slice]) -> tuple[list[tuple[Request, Placement]], list[Slice]]:
        fitting: list[tuple[Request, Placement]] = []
        blocked: list[Slice] = []
        reservations = _Reservations(self._pool, self._victims.already_leaving() if self._preemption else ())
        walk = Walk(slices)
        for request in walk:
            if not self._has_room(request):
                walk.skip_lane()
                continue
            placement = self._reserve(request)
            if placement is not None:
                reservations.record_placement(placement)
                fitting.append((request, placement))
            else:
                alone = reservations.reserve(request) or self._mixed
                blocked.append(walk.current() if alone else walk.skip_lane())
        if reservations.release_all():
            self._no_fit.clear()
        return fitting, blocked

    def _has_room(self, request: Request) -> bool:
        room = group_headroom(self._book, request.group)
        return room is None or request.slots <= room - self._taken[request.group]

    def _reserve(self, request: Request) -> Placement | None:
        """Take slots for a request if they are free."""
        size = size_of(request)
        shares = None if size in self._no_fit else self._pool.fit(request)
        if shares is None:
            self._no_fit.add(size)
            return None
        self._pool.take(shares)
        self._on_pool_changed()
        self._taken[request.group] += request.slots
        return Placement(request.allocation_id, shares, backfilled=self._blocked_at is not None)

    def _on_pool_changed(self) -> None:
        if self._mixed:
            self._no_fit.clear()
            self._hopeless.clear()

    def _allocate(self, fitting: list[tuple[Request, Placement]]) -> None:
        if self._blocked_at is None:
            self.placements += [placement for _, placement in fitting]
        elif self._preemption:
            self.placements += [placement for request, placement in fitting if request.preemptible]

    def _make_room(self, blocked: Iterable[Slice]) -> None:
        """Release runs until blocked requests fit. If that is impossible, nothing changes."""
        walk = Walk(blocked)
        for request in walk:
            size = size_of(request)
            if size in self._hopeless or not self._has_room(request):
                walk.skip_lane()
            elif self._reserve(request) is None and not self._release_for(request):
                self._hopeless[size] = self._book.priority(request.group), request.position

    def _release_for(self, request: Request) -> bool:
        rank = self._book.priority(request.group), request.position
        enough = self._victims.take_fewest(self._pool, request, rank)
        for victim in enough:
            self._pool.free(victim.shares)
            if not victim.leaving:
                id = victim.request.allocation_id
                self.releases[id] = Release(id, wanted_by=request.allocation_id)
        if not enough:
            return False
        self._no_fit.clear()
        self._on_pool_changed()
        self._reserve(request)
        return True


class _Reservations:
    """Reserves free slots for blocked requests that also need slots which are being given back."""

    def __init__(self, pool: Pool, already_leaving: Sequence[Running]) -> None:
        self._pool = pool
        self._reserved: list[tuple[Share, ...]] = []
        self._future_pool = pool.copy() if already_leaving else None
        if self._future_pool is not None:
            for running in already_leaving:
                self._future_pool.free(running.shares)

    def record_placement(self, placement: Placement) -> None:
        """Record that a request got free slots."""
        if self._future_pool is not None:
            self._future_pool.take(placement.shares)

    def reserve(self, request: Request) -> bool:
        """Reserve what a blocked request will hold once those runs have exited.

        False if that does not help.
        """
        shares = self._future_pool.fit(request) if self._future_pool is not None else None
        if shares is None or self._future_pool is None:
            return False
        self._future_pool.take(shares)
        self._pool.take(shares)
        self._reserved.append(shares)
        return True

    def release_all(self) -> bool:
        """Drop the reservations after the level was tried. False if there were none."""
        for shares in self._reserved:
            self._pool.free(shares)
        return bool(self._reserved)
