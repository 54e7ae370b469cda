"""One resource pool as the scheduler keeps it, updated incrementally and always in order.

A pass (`decide`) reads the book without changing it, with one exception: after a pass with nothing to do, the
book remembers how to recognise new requests that change nothing either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sortedcontainers import SortedList

from services.scheduler.policy.fitting import Pool, Shape
from services.scheduler.policy.group_queue import GroupQueue, Size, size_of
from services.scheduler.policy.idle_pass import IdlePass
from services.scheduler.policy.records import Agent, Group, PoolSettings, Request, Running, Share

_DEFAULTS = Group()


class Book:
    """The agents of a pool, its groups, and the requests that wait or hold slots."""

    def __init__(self, settings: PoolSettings | None = None) -> None:
        self._settings = settings or PoolSettings()
        self.pool = Pool(self._settings)
        self.agents: dict[str, Agent] = {}
        self.groups: dict[str, Group] = {}
        self.waiting: dict[str, Request] = {}
        self.running: dict[str, Running] = {}
        self.queues: dict[str, GroupQueue] = {}
        self.levels: dict[int, SortedList] = {}
        """Groups that have requests, by priority: when each arrived and its name, oldest first."""
        self.lanes: dict[Size, set[str]] = {}
        """Names of the groups that have waiting requests, by size of these."""
        self.leaving: dict[str, Running] = {}
        self.expected: dict[str, tuple[str, int]] = {}
        """Group and slots of runs that are over but may be requested again, by any id."""
        self.used: dict[str, tuple[int, int]] = {}
        """Slots and zero-slot places that runs of this pool use, by agent, including those that have gone."""
        self.idle_pass = IdlePass()
        self.impossible_by_size: dict[Size, bool] = {}
        """Sizes that the agents could not serve even when idle: a cache of `capacity.is_impossible`."""

    @property
    def settings(self) -> PoolSettings:
        """The settings of the pool."""
        return self._settings

    @settings.setter
    def settings(self, settings: PoolSettings) -> None:
        # Equal settings must not discard what the last pass found out.
        if settings == self._settings:
            return
        self.idle_pass.invalidate()
        self.impossible_by_size.clear()
        self._settings = self.pool.settings = settings
        for agent in self.agents.values():
            self._sync_agent(agent)
        self.levels = {}
        for name in self.queues:
            self._add_to_level(name)

    def put_agent(self, agent: Agent) -> None:
        """Add or update an agent. Its used slots are computed from the runs."""
        if self.agents.get(agent.id) != agent:
            self.idle_pass.invalidate()
            self.impossible_by_size.clear()
            self.agents[agent.id] = agent
            self._sync_agent(agent)

    def drop_agent(self, agent_id: str) -> None:
        """Remove an agent. Runs with shares there stay known and count again when it returns."""
        if self.agents.pop(agent_id, None) is not None:
            self.idle_pass.invalidate()
            self.impossible_by_size.clear()
            self.pool.drop(agent_id)

    def put_group(self, name: str, group: Group) -> None:
        """Set what a job's owner chose. May be called before or after its requests arrive."""
        if self.groups.get(name) == group:
            return
        if name in self.queues:
            # Otherwise it has no request that this could concern, as when its job is new.
            self.idle_pass.invalidate()
        self._remove_from_level(name)
        self.groups[name] = group
        self._add_to_level(name)

    def drop_group(self, name: str) -> None:
        """Forget what was chosen. Requests that remain get the defaults."""
        if name in self.groups:
            if name in self.queues:
                self.idle_pass.invalidate()
            self._remove_from_level(name)
            del self.groups[name]
            self._add_to_level(name)

    def wait(self, request: Request) -> None:
        """Record that a request waits for slots, or that a waiting request has changed."""
        id = request.allocation_id
        if self.waiting.get(id) == request:
            return
        self.leave(id)
        # After `leave`: a request that changed its group or size must not stay in its old lane.
        self.waiting[id] = request
        self._queue_of(request.group).add_waiting(request)
        self.lanes.setdefault(size_of(request), set()).add(request.group)
        # Not `invalidate`: with thousands of requests behind a full pool, most of those that arrive change
        # nothing.
        self.idle_pass.add_request(request)

    def run(
        self, request: Request, shares: Iterable[Share], *, leaving: bool = False, backfilled: bool = False
    ) -> None:
        """Record that a request holds slots. `leaving`: it was already asked to give them back."""
        id = request.allocation_id
        running = Running(request, tuple(shares), leaving, backfilled)
        if self.running.get(id) == running:
            return
        self.leave(id)
        self.idle_pass.invalidate()
        self.running[id] = running
        self._queue_of(request.group).add_running(running)
        if leaving:
            self.leaving[id] = running
        self._change_used(running.shares, 1)
        self.pool.take(running.shares)

    def expect(self, id: str, group: str, slots: int) -> None:
        """Reserve the share of a run that is over while its next run may still be requested.

        With 0 slots the reservation is dropped: it is known what became of the run.
        """
        # The group may have changed since: the reservation is released where it was made.
        previous_group, held = self.expected.pop(id, (group, 0))
        if slots:
            self.expected[id] = group, slots
            self._queue_of(group).expected += slots
        if held:
            self.queues[previous_group].expected -= held
            self._remove_if_empty(previous_group)
        self.idle_pass.invalidate()

    def leave(self, allocation_id: str) -> None:
        """Forget a request, wherever it is. Does nothing if the request is unknown."""
        waited = self.waiting.pop(allocation_id, None)
        if waited is not None:
            self.idle_pass.invalidate()
            self.queues[waited.group].remove_waiting(waited)
            self._remove_from_lanes(waited.group, size_of(waited))
            self._remove_if_empty(waited.group)
        ran = self.running.pop(allocation_id, None)
        if ran is not None:
            self.idle_pass.invalidate()
            self.leaving.pop(allocation_id, None)
            self.queues[ran.request.group].remove_running(ran)
            self._remove_if_empty(ran.request.group)
            self._change_used(ran.shares, -1)
            self.pool.free(ran.shares)

    def group(self, name: str) -> Group:
        """A group by name, with the defaults if it was not described."""
        return self.groups.get(name, _DEFAULTS)

    def priority(self, group: str) -> int:
        """The priority of a group's requests."""
        chosen = self.group(group).priority
        return self._settings.default_priority if chosen is None else chosen

    def _sync_agent(self, agent: Agent) -> None:
        if not agent.open:
            # Closed to new work only: what runs there stays in `used` and counts again when the agent opens.
            self.pool.drop(agent.id)
            return
        limit = agent.max_zero_slot
        most = self._settings.max_aux_containers_per_agent if limit is None else limit
        used, zero_used = _used_on(self, agent)
        self.pool.put(agent.id, Shape(agent.slots, used, most, zero_used))

    def _queue_of(self, group: str) -> GroupQueue:
        if group not in self.queues:
            self.queues[group] = GroupQueue()
            self._add_to_level(group)
        return self.queues[group]

    def _remove_if_empty(self, group: str) -> None:
        if not self.queues[group]:
            self._remove_from_level(group)
            del self.queues[group]

    def _remove_from_lanes(self, group: str, size: Size) -> None:
        if not self.queues[group].waiting(size):
            self.lanes[size].discard(group)
            if not self.lanes[size]:
                del self.lanes[size]

    def _add_to_level(self, group: str) -> None:
        if group in self.queues:
            self.levels.setdefault(self.priority(group), SortedList()).add(self._age(group))

    def _remove_from_level(self, group: str) -> None:
        if group in self.queues:
            level = self.levels[self.priority(group)]
            level.remove(self._age(group))
            if not level:
                del self.levels[self.priority(group)]

    def _age(self, group: str) -> tuple[float, str]:
        return self.group(group).registered, group

    def _change_used(self, shares: Iterable[Share], sign: int) -> None:
        for share in shares:
            slots, zero = self.used.get(share.agent_id, (0, 0))
            used = slots + sign * share.slots, zero + sign * (share.slots == 0)
            if used == (0, 0):
                # Agents come and go: one entry for each that ever existed would stay.
                self.used.pop(share.agent_id, None)
            else:
                self.used[share.agent_id] = used


def book_of(
    settings: PoolSettings,
    *,
    agents: Iterable[Agent] = (),
    groups: Mapping[str, Group] | None = None,
    running: Iterable[Running] = (),
    waiting: Iterable[Request] = (),
) -> Book:
    """Build a book from all its contents at once."""
    book = Book(settings)
    for agent in agents:
        book.put_agent(agent)
    for name, group in (groups or {}).items():
        book.put_group(name, group)
    for run in running:
        book.run(run.request, run.shares, leaving=run.leaving, backfilled=run.backfilled)
    for request in waiting:
        book.wait(request)
    return book


def group_headroom(book: Book, group: str) -> int | None:
    """Slots that a group may still take; None: no limit."""
    limit = book.group(group).max_slots
    return None if limit is None else limit - book.queues[group].held


def free_slots(book: Book, agent: Agent) -> int:
    """How many slots of an agent are free."""
    return max(0, agent.slots - _used_on(book, agent)[0])


def _used_on(book: Book, agent: Agent) -> tuple[int, int]:
    """Slots and zero-slot places of an agent in use, by whichever pool's runs."""
    (slots, zero), (others_slots, others_zero) = book.used.get(agent.id, (0, 0)), agent.used_elsewhere
    return slots + others_slots, zero + others_zero


def can_preempt(book: Book, running: Running) -> bool:
    """Whether asking the run to exit is allowed, is new, and frees slots, which only open agents do."""
    if not running.request.preemptible or running.leaving:
        return False
    agents = (book.agents.get(share.agent_id) for share in running.shares)
    return any(agent is not None and agent.open for agent in agents)
