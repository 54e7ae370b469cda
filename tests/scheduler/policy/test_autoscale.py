"""The vectors of the scheduling spec for the size of a pool (section 7)."""

import json
from pathlib import Path

import pytest

from services.scheduler.policy.autoscale import demand_of
from services.scheduler.policy.book import book_of
from services.scheduler.policy.records import Group, PoolSettings, Request

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "scheduling-vectors.json").read_text())


@pytest.mark.parametrize("case", VECTORS["desired_new_instances"])
def test_desired_new_instances(case):
    waiting = [
        Request(allocation_id=str(n), job_id=str(n), group=job.get("group", str(n)), slots=job["slots"])
        for n, job in enumerate(case["pending"])
    ]
    groups = {name: Group(**chosen) for name, chosen in (case["groups"] or {}).items()}
    desired = demand_of(
        book_of(PoolSettings(), groups=groups, waiting=waiting),
        slots_per_instance=case["slots_per_instance"],
        max_zero_slot=case["max_zero_slot_per_agent"],
    )
    assert desired.instances == case["desired_new_instances"]


def test_the_reason_names_the_first_of_the_queue_and_not_the_first_that_came_back():
    """The live book and one that is built from a snapshot have their groups in different orders."""
    requests = [Request(allocation_id=f"{group}.1", job_id=group, group=group, slots=1) for group in "234"]
    groups = {"2": Group(registered=2), "3": Group(registered=3), "4": Group(registered=4, priority=1)}

    def reason(book):
        return demand_of(book, slots_per_instance=1, max_zero_slot=0, stop_at=1).reason

    built = book_of(PoolSettings(), groups=groups, waiting=requests)
    assert reason(built) == "1 request waits for 1 slot that no worker has; first of experiment 4"
    built.leave("4.1")
    assert reason(built) == "1 request waits for 1 slot that no worker has; first of experiment 2"
    # It is placed, and asks again: the youngest entry of the book, and still the oldest job.
    built.leave("2.1")
    built.wait(requests[0])
    assert reason(built) == "1 request waits for 1 slot that no worker has; first of experiment 2"
