"""The metric rules of the REST spec, section 4."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_contracts import codec
from det_contracts.events import metrics
from det_contracts.queries import ReportVerdict
from services.metrics.app import RULES
from services.metrics.domain.ledger import RECENT
from tests.metrics.world import World, reports, series, training, validation


def refusals(decided):
    return [d.reason for d in decided if isinstance(d, metrics.ReportRefused)]


def validated(decided):
    return [(d.run, d.steps_completed, d.metric) for d in decided if isinstance(d, metrics.Validated)]


def test_a_validation_is_stated_with_the_searcher_metric(world):
    decided = (
        world.add(reports(training([10], loss=[1.0]), validation([10], loss=[0.5], acc=[0.9])))
        .fold()
        .decide()
    )
    assert decided == [
        metrics.Validated(trial_id=1, number=1, run=1, steps_completed=10, metric=0.5, reported_at=110.0)
    ]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "text", None, True, [0.5], 10**400])
def test_a_metric_that_is_no_finite_number_is_none(world, value):
    assert validated(world.add(reports(validation([1], loss=[value]))).fold().decide()) == [(1, 1, None)]


def test_a_validation_without_the_searcher_metric(world):
    assert validated(world.add(reports(validation([1], other=[2.0]))).fold().decide()) == [(1, 1, None)]


def test_training_and_other_groups_are_not_stated(world):
    assert (
        world.add(reports(training([1, 2], loss=[1, 2]), series("a/b %c", [1], {"x": [1]}))).fold().decide()
        == []
    )


def test_reports_of_an_older_run_are_refused(world):
    world.add(
        reports(training([10], loss=[1]), run=3), reports(training([10, 20], loss=[1, 2]), run=2, number=9)
    )
    (refusal,) = world.fold().decide()
    assert (refusal.run, refusal.group, refusal.steps_completed) == (2, "training", 10)
    assert "invalid run id, 2 (reported) != 3 (expected)" in refusal.reason


def test_a_newer_run_starts_afresh(world):
    world.add(reports(training([10], loss=[1])), reports(training([10], loss=[2]), run=2))
    assert world.fold().decide() == []


def test_a_batch_counts_once(world):
    batch = reports(validation([1], loss=[1.0]))
    later = reports(validation([2], loss=[2.0]), number=2)
    assert validated(world.add(batch, later, batch, later).fold().decide()) == [(1, 1, 1.0), (1, 2, 2.0)]


def test_each_process_of_a_run_counts_its_own_batches(world):
    first = reports(validation([1], loss=[1.0]), sender="a")
    second = reports(validation([2], loss=[2.0]), sender="b")
    third = reports(validation([3], loss=[3.0]), sender="a", number=2)
    nameless = reports(validation([4], loss=[4.0]))
    world.add(first, second, first, third, second, first, nameless, nameless)
    assert [steps for _, steps, _ in validated(world.fold().decide())] == [1, 2, 3, 4]
    again = reports(validation([5], loss=[5.0]), sender="a", run=2)
    assert validated(world.add(again, again).fold().decide()) == [(2, 5, 5.0)]


def test_of_many_processes_the_newest_are_remembered(world):
    for number in range(200):
        world.add(reports(training([number], loss=[1.0]), sender=str(number)))
    world.fold()
    assert [sender.name for sender in world.state.trials[1].senders] == [str(n) for n in range(136, 200)]


def test_batches_without_a_number_are_distinguished_by_their_values(world):
    batch = reports(validation([1], loss=[1.0]), number=0)
    world.add(batch, batch, reports(validation([2], loss=[2.0]), number=0))
    assert validated(world.fold().decide()) == [(1, 1, 1.0), (1, 2, 2.0)]
    world.add(reports(validation([3], loss=[3.0])), reports(validation([1], loss=[9.0]), number=0))
    decided = world.fold().decide()
    assert validated(decided) == [(1, 3, 3.0)]
    assert len(refusals(decided)) == 1


def test_whoever_waits_hears_why_a_batch_was_refused(world):
    for position in range(1, 13):
        world.add(reports(training([1], loss=[position]), number=0))
    world.fold()
    ask = RULES.answers[ReportVerdict]
    assert ask(world.state, ReportVerdict(1, 1)) == ""
    assert "overwriting existing metric keys" in ask(world.state, ReportVerdict(1, 12))
    assert ask(world.state, ReportVerdict(2, 12)) == ""
    assert len(world.state.trials[1].refusals) == 8


def test_a_key_that_comes_twice_is_refused_whole(world):
    world.add(reports(training([5], loss=[1.0])), reports(training([5], acc=[1], loss=[2.0]), number=2))
    (reason,) = refusals(world.fold().decide())
    assert "overwriting existing metric keys is not supported, conflicting key: loss" in reason
    world.add(reports(training([5], acc=[1]), number=3))
    assert world.fold().decide() == []


def test_new_keys_merge(world):
    world.add(
        reports(validation([5], acc=[0.9])),
        reports(validation([5], loss=[1.0]), number=2),
        reports(validation([5], f1=[0.2]), number=3),
        reports(validation([5], acc=[0.1]), number=4),
    )
    decided = world.fold().decide()
    assert validated(decided) == [(1, 5, None), (1, 5, 1.0)]
    assert len(refusals(decided)) == 1


def test_a_refusal_is_short_whatever_is_wrong(world):
    long = "x" * 1_000_000
    world.add(
        reports(series(long, [1], {"a": [1]})),
        reports(training([1], epoch=[long]), number=2),
        reports(training([2], **{long: [1]}), training([2], **{long: [2]}), number=3),
        reports(training([10**300], loss=[1.0]), number=4),
    )
    refused = [d for d in world.fold().decide() if isinstance(d, metrics.ReportRefused)]
    assert [len(codec.encode(d, id="", actor="", at=0.0)) < 2000 for d in refused] == [True] * 4
    assert "the name of a group has at most 255 characters" in refused[0].reason
    assert list(world.state.groups) == ["1/training"]


def test_a_repeat_to_the_letter_is_a_success_without_effect(world):
    same = {"b": [2.0], "a": ["NaN"]}
    world.add(reports(series("validation", [5], same)))
    world.add(reports(series("validation", [5], dict(sorted(same.items()))), number=2))
    assert validated(world.fold().decide()) == [(1, 5, None)]


def test_a_repeat_of_one_part_of_merged_reports_is_a_success(world):
    first, second = training([5], a=[1]), training([5], b=[2])
    world.add(reports(first), reports(second, number=2), reports(first, number=3), reports(second, number=4))
    assert world.fold().decide() == []


def test_batch_metrics_twice_are_refused(world):
    batched = [[{"loss": 1.0}]]
    world.add(
        reports(series("training", [5], {"a": [1]}, batched)),
        reports(series("training", [5], {"b": [1]}, [None]), number=2),
        reports(series("training", [5], {"c": [1]}, batched), number=3),
    )
    (reason,) = refusals(world.fold().decide())
    assert "batch metrics" in reason


def test_a_duplicate_far_back_is_known(world):
    world.add(reports(training(range(100, 100_100, 100), loss=[0.5] * 1000)))
    world.add(reports(training([500, 550, 500], loss=[0.7, 0.7, 0.7]), number=2))
    assert len(refusals(world.fold().decide())) == 2
    (group,) = world.state.groups.values()
    assert len(group.recent) == RECENT
    assert len(group.kinds) == 1


def test_groups_and_kinds_do_not_mix(world):
    world.add(
        reports(training([5], loss=[1]), validation([5], loss=[1.0]), series("mine", [5], {"loss": [1]}))
    )
    assert validated(world.fold().decide()) == [(1, 5, 1.0)]


@pytest.mark.parametrize("epoch", ["one", True, None, [1]])
def test_epoch_must_be_a_number(world, epoch):
    world.add(reports(training([1, 2, 3], epoch=[epoch, 2, "NaN"])))
    (reason,) = refusals(world.fold().decide())
    assert "metric 'epoch' must be a number" in reason


@pytest.mark.parametrize("steps", [-1, 2**53, 2**70])
def test_steps_out_of_range_are_refused(world, steps):
    assert "steps_completed" in refusals(world.add(reports(training([steps], a=[1]))).fold().decide())[0]


def test_uneven_columns_are_refused(world):
    world.add(reports(series("training", [1, 2], {"a": [1]}), validation([1], loss=[1.0])))
    decided = world.fold().decide()
    assert "different lengths" in refusals(decided)[0]
    assert validated(decided) == [(1, 1, 1.0)]


def test_a_run_opens_with_its_first_accepted_report(world):
    world.add(reports(training([10, 20, 30], loss=[1, 2, 3])))
    world.add(
        reports(training([20], epoch=["bad"]), run=2), reports(training([15], loss=[1]), run=2, number=2)
    )
    world.fold()
    judged = [recorded.event for recorded in world.unsaved]
    assert [j.archive for j in judged[:2]] == [None, None]
    assert (judged[2].archive.group, judged[2].archive.steps) == ("training", 15)


def test_what_a_worker_samples_takes_nothing_of_the_training_along(world):
    """Its steps are seconds since the run began: the second run's first sample is at 10."""
    sampled = series("profile.process", [10], {"cpu": [1.0]})
    world.add(reports(sampled), reports(training([50, 94], loss=[1.0, 2.0]), number=2))
    world.add(reports(sampled, run=2), reports(training([94, 150], loss=[3.0, 4.0]), run=2, number=2))
    world.fold()
    archives = [recorded.event.archive for recorded in world.unsaved]
    assert archives[:3] == [None, None, None]
    assert (archives[3].group, archives[3].steps) == ("training", 94)


def test_no_archive_before_there_is_anything_to_archive(world):
    world.add(reports(training([10], epoch=["bad"])), reports(training([10], loss=[1]), run=2)).fold()
    assert [recorded.event.archive for recorded in world.unsaved] == [None, None]


def test_three_thousand_names_stay_small_in_memory(world):
    names = {f'layer {n}\n"weird"/{n}': [0.5] for n in range(3000)}
    for number in range(1, 201):
        world.add(reports(series("training", [number], names), number=number))
    assert world.fold().decide() == []
    (group,) = world.state.groups.values()
    assert len(group.kinds) == 1
    assert len(group.kinds[0].steps) == 1


@given(st.data())
def test_keys_of_a_step_are_taken_once_whatever_comes(data):
    """Against the rule written out: remember every key of every step, and all values."""
    world, taken, values, expected = World(), {}, {}, []
    for number in range(1, data.draw(st.integers(1, 12)) + 1):
        steps = data.draw(st.integers(0, 4))
        names = data.draw(st.sets(st.sampled_from("abc"), min_size=1))
        report = {name: data.draw(st.integers(0, 1)) for name in sorted(names)}
        world.add(reports(series("g", [steps], {name: [v] for name, v in report.items()}), number=number))
        taken_names = taken.setdefault(steps, set())
        if report in values.setdefault(steps, []):
            continue
        if taken_names & names:
            expected.append(steps)
            continue
        taken_names |= names
        values[steps].append(report)
    assert [d.steps_completed for d in world.fold().decide()] == expected
