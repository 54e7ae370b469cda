"""What holds for every pass, on small random clusters."""

from collections import Counter
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.policy import priority
from services.scheduler.policy.explain import explain
from services.scheduler.policy.priority import decide
from services.scheduler.policy.snapshot import Agent, Group, PoolSettings, Request, Running, Share, Snapshot

GROUPS = ("a", "b", "c")


@st.composite
def requests(draw, prefix, sizes):
    return [
        Request(
            allocation_id=f"{prefix}{number}",
            job_id=group,
            group=group,
            slots=draw(st.sampled_from(sizes)),
            preemptible=draw(st.booleans()),
            single_agent=draw(st.booleans()),
            position=Decimal(draw(st.integers(0, 3))),
            requested_at=number,
        )
        for number, group in enumerate(draw(st.lists(st.sampled_from(GROUPS), max_size=8)))
    ]


@st.composite
def snapshots(draw):
    agents = {
        f"n{number}": Agent(
            id=f"n{number}", slots=slots, max_zero_slot=2, draining=draw(st.integers(0, 9)) == 0
        )
        for number, slots in enumerate(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    }
    running = []
    for request in draw(requests("r", (0, 1, 2))):
        name = draw(st.sampled_from(sorted(agents)))
        agent = agents[name]
        used = (agent.slots_used + request.slots, agent.zero_slot_used + (request.slots == 0))
        if used[0] <= agent.slots and used[1] <= agent.max_zero_slot:
            agents[name] = Agent(
                id=name,
                slots=agent.slots,
                max_zero_slot=2,
                draining=agent.draining,
                slots_used=used[0],
                zero_slot_used=used[1],
            )
            running.append(Running(request, (Share(name, request.slots),)))
    groups = {
        name: Group(
            priority=draw(st.sampled_from((1, 42, 99))), max_slots=draw(st.sampled_from((None, None, 3)))
        )
        for name in GROUPS
    }
    settings = PoolSettings(
        preemption=draw(st.booleans()),
        allow_heterogeneous_fits=draw(st.booleans()),
        fitting_policy=draw(st.sampled_from(("best", "worst"))),
    )
    return Snapshot(
        agents=tuple(agents.values()),
        groups=groups,
        settings=settings,
        running=tuple(running),
        waiting=tuple(draw(requests("w", (0, 1, 1, 2, 3, 4, 8)))),
    )


@given(snapshots())
def test_slots_are_given_once_and_requests_served_whole(snapshot):
    decision = decide(snapshot)
    waiting = {request.allocation_id: request for request in snapshot.waiting}
    free = {agent.id: agent.empty for agent in snapshot.agents}
    free_zero = {agent.id: agent.empty_zero for agent in snapshot.agents}
    for placement in decision.allocate:
        request = waiting.pop(placement.allocation_id)
        assert sum(share.slots for share in placement.shares) == request.slots
        assert len(placement.shares) == 1 or not request.single_agent
        for share in placement.shares:
            free[share.agent_id] -= share.slots
            free_zero[share.agent_id] -= share.slots == 0
    assert min([*free.values(), *free_zero.values()]) >= 0


@given(snapshots())
def test_only_those_behind_yield_and_only_if_they_may(snapshot):
    waiting = {request.allocation_id: request for request in snapshot.waiting}
    running = {r.request.allocation_id: r.request for r in snapshot.running}
    for release in decide(snapshot).release:
        victim, wanted = running[release.allocation_id], waiting[release.wanted_by]
        assert victim.preemptible
        assert snapshot.settings.preemption
        levels = (snapshot.group_of(wanted).priority, snapshot.group_of(victim).priority)
        assert levels[0] < levels[1] or (levels[0] == levels[1] and wanted.position < victim.position)


@given(snapshots())
def test_no_group_gets_beyond_its_limit(snapshot):
    held = Counter()
    for running in snapshot.running:
        held[running.request.group] += running.request.slots
    waiting = {request.allocation_id: request for request in snapshot.waiting}
    for placement in decide(snapshot).allocate:
        request = waiting[placement.allocation_id]
        held[request.group] += request.slots
        limit = snapshot.groups[request.group].max_slots
        assert request.slots == 0 or limit is None or held[request.group] <= limit


@given(snapshots())
def test_remembering_failures_only_saves_time(snapshot):
    quick, remembered = decide(snapshot), priority._Pass._failed
    try:
        priority._Pass._failed = lambda *_: False
        assert decide(snapshot) == quick
    finally:
        priority._Pass._failed = remembered


@given(snapshots())
def test_every_wait_has_a_reason(snapshot):
    decision = decide(snapshot)
    for request in snapshot.waiting:
        assert explain(snapshot, decision, request.allocation_id).endswith(".")
