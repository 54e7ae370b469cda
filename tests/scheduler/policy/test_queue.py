"""Moves in the job queue and what it tells of jobs, with the vectors of the scheduling spec, section 6."""

import json
from decimal import Context, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.policy.book import book_of
from services.scheduler.policy.decide import decide
from services.scheduler.policy.queue import (
    UNIT,
    CannotMove,
    QueuedJob,
    UnknownJob,
    initial_position,
    job_info,
    move,
    neighbour,
)
from services.scheduler.policy.records import Agent, Group, PoolSettings, Request, Share

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "scheduling-vectors.json").read_text())
INFO = VECTORS["job_queue_info"]
NOW = 0.001
NAMES = ("job1", "job2", "job3")


def queued(id, position, priority=50):
    return QueuedJob(job_id=id, priority=priority, position=Decimal(position))


def order(queue):
    return [job.job_id for job in sorted(queue, key=lambda job: (job.priority, job.position))]


@pytest.mark.parametrize("case", VECTORS["queue_moves"]["cases"], ids=lambda case: str(case["move"]))
def test_queue_moves(case):
    priorities = case.get("priorities", {})
    jobs = {id: queued(id, 100 * (n + 1), priorities.get(id, 50)) for n, id in enumerate(NAMES)}
    ahead = "ahead_of" in case
    anchor = case["ahead_of"] if ahead else case["behind_of"]
    beyond = neighbour(list(jobs.values()), case["move"], anchor, ahead=ahead)
    assert (beyond.job_id if beyond else ("head" if ahead else "tail")) == case["second_anchor"]
    moved = move(jobs.values(), case["move"], anchor, ahead=ahead, now=NOW)
    assert moved.priority == case["priority"]
    assert (moved.priority != jobs[case["move"]].priority) == case["priority_changes"]
    after = order({**jobs, case["move"]: moved}.values())
    assert after.index(case["move"]) - after.index(anchor) == (-1 if ahead else 1)


def test_a_job_goes_to_the_middle_of_its_new_neighbours():
    queue = [queued("a", 100), queued("b", 200), queued("c", 300)]
    assert move(queue, "c", "b", ahead=True).position == 150
    assert move(queue, "a", "b", ahead=False).position == 250
    assert move(queue, "c", "a", ahead=True).position == 50
    assert move(queue, "a", "c", ahead=False, now=NOW).position == 650
    assert move(queue, "a", "c", ahead=False).position == 301


def test_a_place_that_is_already_right_is_kept():
    queue = [queued("a", 100), queued("b", 200)]
    assert move(queue, "a", "b", ahead=True).position == 100
    assert move(queue, "b", "a", ahead=False, now=NOW).position == 200
    other = queued("c", 150, priority=40)
    assert move([*queue, other], "c", "b", ahead=True) == queued("c", 150, priority=50)
    assert move(queue, "b", "b", ahead=True) == queue[1]


def test_next_to_a_job_of_another_priority_the_smallest_step_is_taken():
    queue = [queued("urgent", 900, priority=1), queued("a", 100), queued("b", 200)]
    assert move(queue, "b", "a", ahead=True).position == 100 - UNIT


def test_between_jobs_of_one_position_the_smallest_step_is_taken():
    queue = [queued("a", 100), queued("b", 100), queued("c", 200)]
    assert order([*queue[:2], move(queue, "c", "a", ahead=False)]) == ["a", "b", "c"]


def test_there_is_room_between_two_jobs_for_many_moves_and_then_a_clear_refusal():
    left, right = queued("left", 1_700_000_000_000_000), queued("right", 1_700_000_000_000_001)
    for _ in range(100):
        moved = move([left, right, queued("x", 0)], "x", "right", ahead=True)
        assert left.position < moved.position < right.position
        right = queued("right", moved.position)
    right = queued("right", left.position.next_plus(Context(prec=60)))
    with pytest.raises(CannotMove, match="unable to compute a new job position for job x"):
        move([left, right, queued("x", 0)], "x", "right", ahead=True)


def test_unknown_jobs():
    for ids in (("a", "x"), ("x", "a")):
        with pytest.raises(UnknownJob, match="job x is not in the queue"):
            move([queued("a", 1)], *ids, ahead=True)


def test_the_initial_position_is_the_submission_in_microseconds():
    assert initial_position(1_700_000_000.25) == Decimal(1_700_000_000_250_000)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(40, 42)), min_size=2, max_size=6),
    st.booleans(),
    st.data(),
)
def test_a_moved_job_stands_on_the_right_side_in_the_level_of_its_anchor(places, ahead, data):
    queue = [queued(str(n), *place) for n, place in enumerate(places)]
    job, anchor = data.draw(st.permutations(queue))[:2]
    moved = move(queue, job.job_id, anchor.job_id, ahead=ahead)
    assert moved.priority == anchor.priority
    assert moved.position < anchor.position if ahead else moved.position > anchor.position
    if len({place[0] for place in places}) == len(places):
        after = order([moved if j is job else j for j in queue])
        assert after.index(job.job_id) - after.index(anchor.job_id) == (-1 if ahead else 1)


def pool_of(tasks, type, agent):
    book = book_of(
        PoolSettings(type=type),
        agents=[Agent(**agent)],
        groups={g["id"]: Group(priority=g["priority"], weight=g["weight"]) for g in INFO["groups"]},
    )
    for number, task in enumerate(tasks):
        book.wait(
            Request(
                allocation_id=task["id"],
                job_id=task["job"],
                group=task["group"],
                slots=task["slots"],
                submitted_at=number,
            )
        )
    for placement in decide(book).allocate:
        book.run(book.waiting[placement.allocation_id], placement.shares)
    return book


def infos(book):
    """What is reported of each job."""
    requests = [*book.waiting.values(), *(share.request for share in book.running.values())]
    jobs = sorted({request.job_id for request in requests})
    return {id: job_info(book, [r for r in requests if r.job_id == id]) for id in jobs}


@pytest.mark.parametrize("type", ["priority", "fair_share"])
def test_job_queue_info(type):
    (agent,) = INFO["agents"]
    job_infos = infos(pool_of(INFO["tasks"], type, agent))
    for id, expected in INFO["priority_scheduler" if type == "priority" else type].items():
        # How many are ahead of a job follows from the queue's order: tests/scheduler/test_listing.py.
        expected_fields = {name: value for name, value in expected.items() if name != "jobs_ahead"}
        assert {name: getattr(job_infos[id], name) for name in expected_fields} == expected_fields


@pytest.mark.parametrize("type", ["priority", "fair_share"])
@pytest.mark.parametrize(("slots", "stats"), [((1, 1, 0, 0), 0), ((2, 2, 2, 2), 1)])
def test_queue_stats(type, slots, stats):
    expected = INFO["queue_stats"][stats]
    tasks = [{"id": f"t{n}", "job": f"job{n}", "group": "group1", "slots": s} for n, s in enumerate(slots)]
    states = [info.state for info in infos(pool_of(tasks, type, INFO["agents"][0])).values()]
    assert states.count("QUEUED") == expected["queued"]
    assert states.count("SCHEDULED") == expected["scheduled"]


def test_the_queue_distinguishes_backfilled_jobs():
    book = book_of(PoolSettings(type="priority"), agents=[Agent(id="a", slots=4)])
    for id, job, backfilled in (("x", "1", False), ("y", "1", True), ("z", "2", False)):
        request = Request(allocation_id=id, job_id=job, group=job, slots=1)
        book.run(request, (Share("a", 1),), backfilled=backfilled)
    assert [info.state for info in infos(book).values()] == ["SCHEDULED_BACKFILLED", "SCHEDULED"]
