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
