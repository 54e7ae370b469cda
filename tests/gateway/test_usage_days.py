"""Slot time by day is the sum over the runs, and reading it does not go through them."""

import random
from collections import defaultdict

import msgspec
import sqlalchemy as sa

from det_contracts.events.scheduler import Part
from services.catalogue import runs, usage_days
from services.catalogue.domain import Allocation
from services.catalogue.usage_days import DAY_S, USAGE, UsageKey

FIRST = 19_600
NOW = (FIRST + 12) * DAY_S + 1234.5


def some_run(chance, id):
    experiment = chance.randrange(1, 4)
    began = (FIRST + 10 * chance.random()) * DAY_S
    task = chance.random() < 0.2
    return Allocation(
        id=id,
        task_id="notebook" if task else f"{experiment}.a",
        kind="NOTEBOOK" if task else "TRIAL",
        experiment_id=0 if task else experiment,
        trial_id=None if task else experiment,
        run=1,
        slots=chance.randrange(3),
        pool=chance.choice(["a", "b"]),
        priority=0,
        requested_at=began,
        started_at=chance.choice([None, began, began]),
        ended_at=chance.choice([None, began + chance.random() * 3 * DAY_S]),
        members=(Part("w", (0,), 0),) if chance.random() < 0.9 else (),
    )


def summed(runs_by_id, first, last):
    totals = defaultdict(int)
    for run in runs_by_id.values():
        for key, slot_us in usage_days.by_day(run, NOW if run.ended_at is None else run.ended_at):
            if first <= key.day <= last:
                totals[key] += slot_us
    return {key: slot_us / 1e6 for key, slot_us in totals.items()}


def test_it_is_the_sum_over_the_runs_however_they_change_and_go(database):
    chance, runs_by_id = random.Random(1), {}
    for _ in range(60):
        changes = {f"r{chance.randrange(40)}": None for _ in range(chance.randrange(1, 8))}
        for id in changes:
            before = runs_by_id.get(id)
            run = some_run(chance, id)
            if before is not None and before.started_at is not None and run.started_at is None:
                # A run that has started stays so.
                run = None
            changes[id] = run
        with database.engine.begin() as connection:
            runs.write(connection, {("allocations", id): run for id, run in changes.items()})
        runs_by_id = {id: run for id, run in (runs_by_id | changes).items() if run is not None}
        first, last = FIRST + chance.randrange(6), FIRST + chance.randrange(6, 14)
        with database.engine.begin() as connection:
            assert runs.slot_seconds(connection, first, last, NOW) == summed(runs_by_id, first, last)
    with database.engine.begin() as connection:
        assert runs.slot_seconds(connection, 0, None, NOW) == summed(runs_by_id, 0, 10**6)
        # What was taken off leaves no row.
        runs.write(connection, {("allocations", id): None for id in runs_by_id})
        assert connection.execute(sa.select(sa.func.count()).select_from(USAGE)).scalar() == 0


def test_a_sum_reads_a_row_for_what_used_slots_on_a_day_and_no_run_that_ended(database, monkeypatch):
    """A year of a busy cluster has a million runs."""
    run = some_run(random.Random(1), "x")
    ended = msgspec.structs.replace(
        run, experiment_id=1, slots=1, pool="a", started_at=FIRST * DAY_S, members=(Part("w", (0,), 0),)
    )
    many = {
        ("allocations", f"r{number}"): msgspec.structs.replace(
            ended, id=f"r{number}", ended_at=FIRST * DAY_S + 60.0
        )
        for number in range(1200)
    }
    live = msgspec.structs.replace(ended, id="live", started_at=NOW - 10.0, ended_at=None)
    with database.engine.begin() as connection:
        runs.write(connection, many | {("allocations", "live"): live})
    decoded, real = [], runs._run_decoder

    class Counting:
        def decode(self, body):
            decoded.append(body)
            return real.decode(body)

    monkeypatch.setattr(runs, "_run_decoder", Counting())
    with database.engine.begin() as connection:
        assert runs.slot_seconds(connection, FIRST, None, NOW) == {
            UsageKey(FIRST, 1, "", "a"): 1200 * 60.0,
            UsageKey(FIRST + 12, 1, "", "a"): 10.0,
        }
        assert connection.execute(sa.select(sa.func.count()).select_from(USAGE)).scalar() == 1
    assert len(decoded) == 1
