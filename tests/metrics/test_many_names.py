"""A script that thinks of ever more names makes its own trial say less, and hides no other."""

import msgspec
import pytest

from det_contracts.queries import MetricNames, TrialSummaries
from services.metrics.domain import fold
from services.metrics.reports import statistics, writer
from services.metrics.reports.partitions import partitions_of
from tests.metrics.world import reports, series, training, validation

ROOM = 4000


@pytest.fixture
def ask(tables, world, monkeypatch):
    monkeypatch.setattr(statistics, "ANSWER_BYTES", ROOM)
    monkeypatch.setattr(statistics, "MAX_NAMES_PER_GROUP", 200)

    def tell(*what):
        world.add(*what).fold()
        tables.save(world)
        ids = sorted({batch.trial_id for batch in what})
        return tables.ask(TrialSummaries(trial_ids=ids))

    return tell


def named(count, start=0):
    return {f"name{number:06}": [1.0] for number in range(start, start + count)}


def test_one_answer_holds_all_trials_and_those_that_say_most_say_less(ask):
    quiet = [reports(training([5], loss=[0.5], accuracy=[0.9]), trial=id) for id in (1, 3)]
    loud = reports(
        validation([7], loss=[0.25], **named(150)),
        series("training", [7], named(150)),
        *(series(f"group{number}", [7], {"x": [1.0]}) for number in range(50)),
        trial=2,
    )
    summaries = ask(*quiet, loud)
    assert set(summaries["1"]["summary"]["training"]) == {"loss", "accuracy"}
    assert summaries["3"] | {"summary": 0} == summaries["1"] | {"summary": 0}
    assert summaries["2"]["total_batches"] == 7
    assert summaries["2"]["latest_validation"]["metric"] == 0.25
    assert summaries["2"]["summary"]
    assert len(msgspec.json.encode(summaries)) <= ROOM


def test_names_within_the_limit_are_all_returned(ask):
    summaries = ask(reports(training([5], **named(15))))
    assert len(summaries["1"]["summary"]["training"]) == 15


def test_statistics_are_kept_of_so_many_names_and_of_no_longer_ones(ask, monkeypatch):
    monkeypatch.setattr(statistics, "ANSWER_BYTES", 10**9)
    batches = [reports(training([n], **named(60, n * 60)), number=n + 1) for n in range(10)]
    last = reports(training([50], **named(1), **{"x" * 600: [1.0]}), number=11)
    training_summary = ask(*batches, last)["1"]["summary"]["training"]
    assert len(training_summary) == 200
    assert training_summary["name000000"]["count"] == 2
    assert max(map(len, training_summary)) < 20


def test_more_names_of_an_earlier_release_are_returned_up_to_the_limit(ask, monkeypatch):
    monkeypatch.setattr(statistics, "ANSWER_BYTES", 10**9)
    monkeypatch.setattr(statistics, "MAX_NAMES_PER_GROUP", 500)
    assert len(ask(reports(training([5], **named(300))))["1"]["summary"]["training"]) == 300
    monkeypatch.setattr(statistics, "MAX_NAMES_PER_GROUP", 200)
    assert len(ask(reports(training([6], **named(1)), number=2))["1"]["summary"]["training"]) == 200


@pytest.fixture
def columns(monkeypatch):
    """How many columns of points were made, one number for each report."""
    made = []
    real = writer.column

    def counted(values):
        made.append(values)
        return real(values)

    monkeypatch.setattr(writer, "column", counted)
    return made


def test_names_beyond_what_is_kept_are_not_worked_through(ask, columns, monkeypatch):
    monkeypatch.setattr(statistics, "MAX_NAMES_PER_TRIAL", 300)
    ask(reports(training([1], **named(5000))))
    assert len(columns) == 200
    ask(reports(*(series(f"group{n}", [2], named(50, 50 * n)) for n in range(100)), number=2))
    assert len(columns) == 300
    ask(reports(training([3], **named(5000, 5000)), series("other", [3], named(5000)), number=3))
    assert len(columns) == 300
    # What is known goes on, and another trial has room of its own.
    ask(reports(training([4], **named(5000)), number=4))
    ask(reports(training([1], **named(100)), trial=2))
    assert len(columns) == 300 + 200 + 100


def test_what_the_search_goes_by_is_kept_among_any_number_of_names(ask, columns, monkeypatch, tables):
    monkeypatch.setattr(statistics, "ANSWER_BYTES", 10**9)
    ask(reports(training([1], **named(5000)), validation([1], **named(5000))))
    summary = ask(reports(validation([2], **named(5000, 5000), loss=[0.5], epoch=[1]), number=2))["1"]
    assert summary["summary"]["validation"]["loss"]["last"] == 0.5
    assert summary["best_validation"]["metric"] == 0.5
    with tables.database.engine.begin() as connection:
        newest = partitions_of(connection, [1], "validation")[-1]
    assert newest.names == ["epoch", "loss"]


def test_groups_of_a_trial_are_kept_up_to_a_number(ask, world, monkeypatch):
    """Also where each of them has nothing but the epoch, which is kept among any number of names."""
    monkeypatch.setattr(statistics, "ANSWER_BYTES", 10**9)
    monkeypatch.setattr(fold, "MAX_GROUPS_PER_TRIAL", 20)
    many = [series(f"group{number}", [2], {"epoch": [1]}) for number in range(100)]
    ask(reports(*many[:50], number=1), reports(training([1], loss=[0.5]), trial=2))
    answer = ask(reports(*many[50:], training([3], loss=[0.25]), validation([3], loss=[0.75]), number=2))["1"]
    assert set(answer["summary"]) == {"training", "validation", *(f"group{number}" for number in range(20))}
    assert answer["best_validation"]["metric"] == 0.75
    assert len(list(world.state.groups_of.ids(1))) == 22
    # What is known goes on, and nothing of it is refused.
    answer = ask(reports(series("group7", [9], {"epoch": [2]}), *many[60:70], number=3))["1"]
    assert answer["summary"]["group7"]["epoch"]["count"] == 2
    assert not world.state.trials[1].refusals


def test_names_of_one_experiment_hide_none_of_another(ask, tables):
    loud = reports(training([1], **named(150)), series("mine", [1], named(150)), trial=2, experiment=2)
    quiet = reports(training([1], loss=[0.5]), validation([1], accuracy=[0.9]), trial=1)
    ask(quiet, loud)
    names = tables.ask(MetricNames([1, 2]))
    assert "loss" in names["training"]
    assert names["validation"] == ["accuracy"]
    assert 20 < sum(map(len, names.values())) < 300
    assert len(msgspec.json.encode(names)) <= ROOM
    assert tables.ask(MetricNames([1])) == {"training": ["loss"], "validation": ["accuracy"]}
