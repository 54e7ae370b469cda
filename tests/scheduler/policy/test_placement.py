"""All placement scenarios of the scheduling spec, step by step, and what they leave open of two policies."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from services.scheduler.policy.book import Book
from services.scheduler.policy.decide import decide
from services.scheduler.policy.records import Agent, Group, PoolSettings, Request, Share

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "scheduling-vectors.json").read_text())


class Cluster:
    """Applies the steps of a scenario to a book."""

    def __init__(self, scenario):
        self.positions, self.count = scenario.get("job_positions", {}), 0
        self.book = Book(
            PoolSettings(type=scenario["scheduler"], preemption=scenario.get("preemption", False))
        )
        for agent in scenario["agents"]:
            self.book.put_agent(Agent(**agent))
        for age, group in enumerate(scenario["groups"]):
            self.group(group.pop("id"), age, **group)
        for task in scenario["tasks"]:
            self.add(task)

    def group(self, name, age, **chosen):
        self.book.put_group(name, Group(registered=age, **chosen))

    def add(self, task):
        self.count += 1
        job = task.get("job", task["id"])
        if "group" not in task:
            self.group(task["id"], 1000 + self.count, weight=0)
        request = Request(
            allocation_id=task["id"],
            job_id=job,
            group=task.get("group", task["id"]),
            slots=task["slots"],
            preemptible=not task.get("non_preemptible"),
            position=Decimal(str(self.positions.get(job, 0))),
            submitted_at=task.get("submitted", self.count),
        )
        if "agent" in task:
            self.book.run(request, (Share(task["agent"], task["slots"]),))
        else:
            self.book.wait(request)

    def step(self, step, decision):
        if step.get("apply_allocations"):
            for placement in decision.allocate:
                self.book.run(self.book.waiting[placement.allocation_id], placement.shares)
        for task_id in step.get("finish_tasks", ()):
            self.book.leave(task_id)
        for task in step.get("add_tasks", ()):
            self.add(task)


def check(expected, decision):
    assert {p.allocation_id for p in decision.allocate} == set(expected["allocate"])
    if "release" in expected:
        assert {r.allocation_id for r in decision.release} == set(expected["release"])


@pytest.mark.parametrize("scenario", VECTORS["placement"], ids=lambda s: f"{s['scheduler']}: {s['name']}")
def test_placement(scenario):
    scenario = json.loads(json.dumps(scenario))
    cluster = Cluster(scenario)
    decision = decide(cluster.book)
    check(scenario["expect"], decision)
    for step in scenario.get("steps", ()):
        cluster.step(step, decision)
        decision = decide(cluster.book)
        check(step["expect"], decision)
