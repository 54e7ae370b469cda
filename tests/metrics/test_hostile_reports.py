"""One script, whatever it reports: neither time, nor memory, nor the log is used up for the others."""

import contextlib
import itertools

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from det_contracts.events.searcher import TrialCreated, TrialsDeleted
from det_contracts.queries import MetricNames, ReportVerdict, TrialSummaries, ValidationHistory
from det_contracts.reports import ReportBatch, Series
from services.kit.rounds import Rounds
from services.metrics.app import RULES
from services.metrics.domain import judge, ledger
from services.metrics.domain.judge import Judge
from services.metrics.domain.state import Trial
from services.metrics.reports import points, statistics, writer
from services.metrics.reports.partitions import partitions_of
from services.metrics.reports.tables import HOMES
from tests.metrics.world import reports, series, training, validation


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_message_of_very_many_sets_of_names_is_judged_once_through():
    many = 5000
    distinct_series = [Series("g", [n], [1.0], {Counted(f"name{n}"): [1.0]}) for n in range(many)]
    batch = ReportBatch(
        trial_id=1,
        experiment_id=1,
        run=1,
        number=1,
        searcher_metric="loss",
        smaller_is_better=True,
        series=distinct_series,
    )
    Counted.compared = 0
    batch_judge = Judge(Trial(id=1), {}, 500, batch, position=1, size=1)
    batch_judge.judge_batch()
    assert len(batch_judge.pieces) == many
    assert Counted.compared < 5 * many


def test_reports_at_earlier_steps_are_compared_with_so_much(world, monkeypatch):
    """Thirty-two sets of names, each at a thousand irregular steps, and then many reports before them."""
    looked = []
    real = ledger.contains

    def counted(steps, number):
        looked.append(len(steps))
        return real(steps, number)

    for kind in range(32):
        at = [kind * 10**7 + n * n for n in range(1, 1500)]
        world.add(reports(series("g", at, {f"k{kind}": [1.0] * len(at)}), number=kind + 1))
    world.fold()
    monkeypatch.setattr(ledger, "contains", counted)
    world.add(reports(series("g", range(2000), {"new": [1.0] * 2000}), number=99)).fold()
    assert 0 < sum(looked) <= ledger.COMPARISONS
    assert world.state.trials[1].decided == 0


def weight(world):
    return sum(len(msgspec.json.encode(group)) for group in world.state.groups.values())


def test_what_is_remembered_of_a_trial_has_an_end(world, monkeypatch):
    monkeypatch.setattr(judge, "REMEMBERED_BYTES", 100_000)
    number, sizes = 0, []
    for group in range(20):
        for kind in range(10):
            number += 1
            names = {f"a long name of set {kind} {n}": [1.0] for n in range(50)}
            world.add(reports(series(f"group{group}", [kind], names), number=number))
        world.fold()
        sizes.append(weight(world))
    assert sizes[-1] < 100_000
    assert 0 < world.state.trials[1].remembered <= 100_000
    stored_groups = [stored_group for stored_group in world.state.groups.values()]
    assert world.state.trials[1].remembered == sum(stored_group.weight for stored_group in stored_groups)
    # Who has room is compared as ever, in another trial.
    twice = reports(training([1], a=[1.0]), trial=2), reports(training([1], a=[2.0]), trial=2, number=2)
    world.add(*twice).fold()
    assert world.state.trials[2].refused == 1


def test_a_new_run_does_not_add_to_what_is_remembered(world):
    for run in range(1, 6):
        world.add(reports(training([1, 2], a=[1.0, 2.0]), run=run)).fold()
    assert world.state.trials[1].remembered == world.state.groups["1/training"].weight > 0


def test_refusals_fill_no_log(world, monkeypatch):
    monkeypatch.setattr(judge, "MAX_REFUSALS_PER_TRIAL", 20)
    bad = series("training", [-1] * 500, {"a": [1.0] * 500})
    world.add(reports(bad))
    assert len(world.fold().pending()) == 20
    position = len(world.add(reports(bad, number=2)).streams["REPORTS"])
    world.fold().decide()
    assert world.state.trials[1].decided == 20
    # Who asks about this very batch is told all the same, and others' are not.
    assert "steps_completed must be" in RULES.answers[ReportVerdict](world.state, ReportVerdict(1, position))
    good = world.add(reports(training([7], a=[1.0]), number=3)).fold()
    query = ReportVerdict(1, len(good.streams["REPORTS"]))
    assert RULES.answers[ReportVerdict](world.state, query) == ""


def test_validations_fill_no_log(world, monkeypatch):
    monkeypatch.setattr(judge, "MAX_VALIDATIONS_PER_TRIAL", 10)
    world.add(reports(validation(range(1, 9), loss=[0.5] * 8))).fold()
    world.add(reports(validation(range(9, 12), loss=[0.5] * 3), number=2)).fold()
    *decided, refusal = world.decide()
    assert len(decided) == 8
    assert "a trial has at most 10 validations" in refusal.reason
    world.add(reports(validation([9, 10], loss=[0.5] * 2), training([9], a=[1.0]), number=3)).fold()
    assert len(world.decide()) == 2


def test_what_one_trial_reports_fills_no_disk(world, tables, monkeypatch):
    batch = reports(training([1], a=[1.0]))
    size = len(msgspec.json.encode(batch))
    monkeypatch.setattr(judge, "MAX_REPORT_BYTES_PER_TRIAL", 3 * size + 10)
    for number in range(1, 7):
        world.add(reports(training([number], a=[1.0]), number=number)).fold()
    tables.save(world)
    refused = world.decide()
    assert len(refused) == 3
    assert "trial 1 has reported more than" in refused[0].reason
    summary = tables.ask(TrialSummaries(trial_ids=[1]))["1"]
    assert (summary["total_batches"], summary["summary"]["training"]["a"]["count"]) == (3, 3)
    world.add(reports(training([1], a=[1.0]), trial=2)).fold()
    assert world.pending() == []


@pytest.mark.parametrize("limit", ["MAX_PARTITIONS", "MAX_NAMES_BYTES"])
def test_points_of_so_many_sets_of_names_are_kept_and_statistics_of_all(world, tables, monkeypatch, limit):
    monkeypatch.setattr(
        writer, limit, {"MAX_PARTITIONS": 12, "MAX_NAMES_BYTES": 12 * len('["name00"]')}[limit]
    )
    for number in range(1, 31):
        world.add(reports(training([number], **{f"name{number:02}": [1.0]}), number=number)).fold()
        if number % 5 == 0:
            tables.save(world)
    # What is known goes on, and so do others.
    world.add(
        reports(training([40], name03=[2.0]), number=31), reports(training([1], a=[1.0]), trial=2)
    ).fold()
    tables.save(world)
    training_summary = tables.ask(TrialSummaries(trial_ids=[1]))["1"]["summary"]["training"]
    assert len(training_summary) == 30
    assert training_summary["name03"]["count"] == 2
    with tables.database.engine.begin() as connection:
        assert len(partitions_of(connection, [1])) == 12
        assert len(partitions_of(connection, [2])) == 1


@pytest.mark.parametrize("first", ["created", "reported", "saved in between", "reported and saved"])
def test_a_trial_reports_into_its_own_experiment_whatever_it_claims(world, tables, first):
    made = TrialCreated(
        trial_id=1, experiment_id=5, request_id="r", task_id="5.r", seed=1, hparams={}, reason=""
    )
    honest = reports(validation([1], loss=[0.9]), trial=2, experiment=7)
    forged = reports(validation([1], loss=[0.1], mine=[1.0]), trial=1, experiment=7)
    world.add(honest).fold()
    for record in (made, forged) if first in ("created", "saved in between") else (forged, made):
        world.add(record)
        world.fold()
        if "saved" in first:
            tables.save(world)
    tables.save(world)
    world.add(reports(validation([2], loss=[0.05]), trial=1, experiment=7, number=2)).fold()
    tables.save(world)
    assert tables.ask(MetricNames([7])) == {"validation": ["loss"]}
    assert tables.ask(MetricNames([5])) == {"validation": ["loss", "mine"]}
    history = tables.ask(ValidationHistory(7, True))
    assert [(row["trial_id"], row["metric"]) for row in history] == [(2, 0.9)]


def test_a_deleted_trial_has_no_home(world, tables):
    made = TrialCreated(
        trial_id=1, experiment_id=5, request_id="r", task_id="5.r", seed=1, hparams={}, reason=""
    )
    world.add(made, TrialsDeleted(5, (1,), (), "")).fold()
    tables.save(world)
    with tables.database.engine.begin() as connection:
        assert connection.execute(sa.select(HOMES)).all() == []


POINTS = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=30)


@given(POINTS)
def test_added_keys_join_the_first_point_at_their_steps(rows):
    runs, steps, merges = (
        np.array(column) for column in zip(*sorted(rows, key=lambda row: row[:2]), strict=True)
    )
    for place, origin in enumerate(points._origins(steps, runs, merges)):
        same = [
            n for n in range(place) if (runs[n], steps[n]) == (runs[place], steps[place]) and not merges[n]
        ]
        assert origin == (min(same) if same and merges[place] else place)


def test_any_number_of_keys_may_be_added_at_one_step():
    """Compared one by one with all before it, this takes hours."""
    many = 200_000
    merges = np.ones(many, np.bool_)
    merges[7] = False
    origins = points._origins(np.zeros(many, np.int64), np.ones(many, np.int64), merges)
    assert origins[:8].tolist() == list(range(8))
    assert set(origins[8:].tolist()) == {7}


@contextlib.contextmanager
def statements(tables):
    """Counts statements while it is open."""
    executed = []

    def note(*arguments):
        executed.append(arguments[2])

    sa.event.listen(tables.database.engine, "before_cursor_execute", note)
    yield executed
    sa.event.remove(tables.database.engine, "before_cursor_execute", note)


def test_sets_of_names_are_looked_up_together(world, tables):
    """One message holds thousands, and each statement costs as much as many rows."""
    many = 1200
    for number in (1, 2):
        distinct_series = [series("g", [number * many + n], {f"name{n}": [1.0]}) for n in range(many)]
        world.add(reports(*distinct_series, number=number)).fold()
        with statements(tables) as executed:
            tables.save(world)
        assert len(executed) < 40
    trial = tables.ask(TrialSummaries([1]))["1"]
    assert len(trial["summary"]["g"]) == many
    with tables.database.engine.begin() as connection:
        assert len(partitions_of(connection, [1])) == many


def test_a_run_after_another_costs_what_it_makes_outdated(world, tables, monkeypatch):
    """A script says itself which run it is: each message may begin another."""
    recounted = []
    real = statistics.Totals._recount
    monkeypatch.setattr(
        statistics.Totals, "_recount", lambda totals, id: recounted.append(id) or real(totals, id)
    )
    costs = []
    for part in range(3):
        for run in range(part * 20 + 1, part * 20 + 21):
            world.add(reports(training([1, 2, 3], a=[1.0, 2.0, float(run)]), run=run))
        world.fold()
        with statements(tables) as executed:
            tables.save(world)
        costs.append(len(executed))
    # As many partitions as there were runs, of which one each time has anything to archive.
    assert costs[2] <= costs[1] + 20
    assert recounted == [1, 1, 1]
    metric_summary = tables.ask(TrialSummaries([1]))["1"]["summary"]["training"]["a"]
    assert (metric_summary["count"], metric_summary["last"]) == (3, 60.0)


def test_trials_that_validate_without_pause_delay_another_by_a_round_or_two(world):
    """Each round holds the decisions about two of them at most, and they go on before the next."""
    steps, many = itertools.count(1), range(1, 5)

    def flood():
        for id in many:
            at = list(itertools.islice(steps, 1000))
            world.add(reports(validation(at, loss=[0.5] * 1000), trial=id, number=at[0] // 1000 + 1))

    rounds = Rounds(RULES, new_id=lambda: "round", on_parked=lambda key, why: pytest.fail(why))
    flood()
    world.add(reports(validation([1], loss=[0.5]), trial=9)).fold()
    touched = {("trials", id): "" for id in (*many, 9)}
    for _ in range(3):
        decided = [each.event for each in rounds.from_changes(world.state, 0.0, touched).events]
        if any(event.trial_id == 9 for event in decided):
            return
        assert len(decided) > 900
        world.add(*decided)
        flood()
        world.fold()
        touched |= {("trials", id): "" for id in many}
    pytest.fail("trial 9 is not decided on in three rounds")
