"""Written in any cuts, or anew from the beginning: the tables answer the same."""

import random

import pytest

from det_contracts import subjects
from det_contracts.queries import BestValidation, LogPage, Reports, TrialSummaries
from services.kit.rules import dump
from tests.fixtures.databases import POSTGRESQL_IN_FULL
from tests.metrics.world import lines, reports, series, training

QUERIES = [
    TrialSummaries([1, 2, 3]),
    Reports(trial_ids=[1, 2, 3]),
    Reports(trial_ids=[2], group="validation", archived=False),
    LogPage(task_id="1.a"),
    LogPage(task_id="1.b", descending=True, limit=5),
    BestValidation(1, True),
    BestValidation(1, False),
]


def history(chance):
    """A few trials with restarts, odd values, duplicates and logs."""
    batches, numbers, offset = [], {}, 0
    for _ in range(60):
        trial = chance.randint(1, 3)
        run, at = numbers.get(trial, (1, 0))
        if chance.random() < 0.15:
            run, at = run + 1, 0
        at += chance.random() < 0.9
        numbers[trial] = (run, at)
        group = chance.choice(["training", "validation", "custom"])
        steps = [chance.randint(0, 12) for _ in range(chance.randint(1, 4))]
        values = [chance.choice([chance.gauss(0, 1), "NaN", "text", 1e308, -3]) for _ in steps]
        columns = {chance.choice(["loss", "a", "b"]): values}
        batched = [[{"x": 1}]] * len(steps) if chance.random() < 0.3 else []
        stale = chance.random() < 0.1
        batches.append(
            reports(
                series(group, steps, columns, batched),
                trial=trial,
                run=max(run - stale, 1),
                number=max(at, 1),
            )
        )
        if chance.random() < 0.5:
            offset += chance.randint(0, 2)
            batches.append(
                lines(*["line"] * chance.randint(1, 4), offset=offset, task=chance.choice(["1.a", "1.b"]))
            )
    return batches


@POSTGRESQL_IN_FULL
@pytest.mark.parametrize("seed", range(4))
def test_rebuilt_equals_live(world, tables, seed):
    chance = random.Random(seed)
    world.add(*history(chance))
    while any(world.at[s] < len(world.streams[s]) for s in world.streams):
        for _ in range(chance.randint(1, 20)):
            world.step(chance.choice([subjects.REPORTS, subjects.LOGS]))
        if chance.random() < 0.5:
            world.decide()
        tables.save(world)
    world.decide()
    tables.save(world)
    live, state = [tables.ask(query) for query in QUERIES], world.dump()
    assert sum(row["archived"] for row in live[1]["rows"]) > 0
    stored, positions = tables.state()
    assert dump(stored) == state
    assert positions == world.at

    tables.drop()
    world.restart().fold()
    tables.save(world)
    assert world.pending() == []
    assert world.dump() == state
    assert [tables.ask(query) for query in QUERIES] == live


def test_a_restart_from_the_snapshot_goes_on_as_if_nothing_had_been(world, tables):
    world.add(reports(training([1, 2], a=[1, 2]))).fold()
    tables.save(world)
    world.state, world.at = tables.state()
    world.add(reports(training([1], a=[5]), number=2), reports(training([2, 3], b=[1, 1]), number=3))
    (refusal,) = world.fold().decide()
    assert refusal.steps_completed == 1
    tables.save(world)
    rows = tables.ask(Reports(trial_ids=[1]))["rows"]
    assert [row["metrics"] for row in rows] == [{"a": 1}, {"a": 2, "b": 1}, {"b": 1}]
