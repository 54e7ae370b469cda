"""Experiments whose trials run outside of the cluster: told of, never searched or scheduled."""

import pytest

from det_contracts.commands import (
    ChangeExperiment,
    CreateExperiment,
    CreateTrial,
    EndTrial,
    KillTrial,
    OpenRun,
)
from det_contracts.events import checkpoints, searcher, trial
from det_contracts.problems import Refused
from det_contracts.queries import SearchProgress, SearchState
from services.searcher.queries import search_progress, search_state
from services.searcher.unmanaged import ReportScriptHeard, ReportScriptSilent
from tests.searcher.unmanaged import POLL_S, UnmanagedExperiment

PATIENCE_S = 300.0


@pytest.fixture
def outside(searching):
    return UnmanagedExperiment(searching)


def kinds(events):
    return [type(event) for event in events]


def refused(outside, act, text):
    before = len(outside.fold.decided)
    with pytest.raises(Refused) as refusal:
        act()
    assert text in refusal.value.problem.message
    assert len(outside.fold.decided) == before


def test_no_slots_are_ever_asked_for(outside):
    outside.trial(lr=0.1)
    assert outside.start() == {"run": 1, "checkpoint": None, "steps_completed": 0}
    outside.searching.complete(1)
    outside.end()
    assert searcher.RunRequested not in kinds(outside.fold.decided)
    assert searcher.StopRequested not in kinds(outside.fold.decided)
    assert outside.states() == ("COMPLETED", "COMPLETED")
    assert outside.state.timers == {}
    created = next(e for e in outside.fold.decided if isinstance(e, searcher.TrialCreated))
    assert (created.hparams, created.task_id) == ({"lr": 0.1}, "1.t")


def test_the_same_names_lead_to_the_same(outside):
    assert outside.trial() == outside.trial() == 1
    again = CreateExperiment(user="bob", config={}, original_config="", unmanaged=True, request_key=":mine")
    assert outside.rule(again) == 1
    assert outside.trial("other") == 2
    assert len(outside.state.experiments) == 1


def test_trial_ids_are_unique_beside_a_search(outside):
    outside.searching.submit({"name": "random", "max_length": 5, "max_trials": 3})
    outside.trial()
    assert sorted(outside.state.trials) == [1, 2, 3, 4]
    assert outside.state.trials[4].experiment_id == 1


def test_a_run_goes_on_from_the_latest_checkpoint(outside):
    outside.trial()
    outside.start()
    outside.searching.store_checkpoint(1, "c-1", 40)
    outside.end(state="ERROR")
    assert outside.states() == ("ERROR", "ERROR")
    assert outside.start() == {"run": 2, "checkpoint": "c-1", "steps_completed": 40}
    assert outside.states() == ("ACTIVE", "ACTIVE")
    assert outside.state.trials[1].restarts == 1
    outside.end()
    assert outside.states() == ("COMPLETED", "COMPLETED")


def test_a_new_run_takes_over_one_that_is_open(outside):
    outside.trial()
    outside.start()
    assert outside.start()["run"] == 2
    outside.beat(run=1)
    outside.pass_time(PATIENCE_S + 1)
    assert outside.states() == ("ERROR", "ERROR")


def test_what_ran_is_not_started_anew_by_mistake(outside):
    outside.trial()
    outside.start(resume=False)
    refused(outside, lambda: outside.start(resume=False), "start it with resume")


def test_an_operation_is_answered_by_its_script(outside):
    outside.trial()
    outside.start()
    assert search_progress(outside.state, SearchProgress([1], {1: 50})) == {"1": 0.5}
    outside.searching.decisions_after(trial.Progressed(1, 1, 25.0))
    assert search_progress(outside.state, SearchProgress([1], {1: 50})) == {"1": 0.25}
    assert search_progress(outside.state, SearchProgress([1])) == {"1": 0.25}
    outside.searching.decisions_after(trial.Progressed(1, 1, -25.0))
    assert search_progress(outside.state, SearchProgress([1])) == {"1": 0.0}
    decided = outside.searching.complete(1, metric=0.5)
    assert decided == [searcher.TrialIdled(1, 1, True, "the search needs no further training of it")]
    assert outside.states() == ("ACTIVE", "ACTIVE")


def test_an_unanswered_operation_is_open_again_in_the_next_run(outside):
    outside.trial()
    outside.start()
    outside.end(state="ERROR")
    outside.start()
    assert not outside.state.trials[1].complete
    assert outside.searching.complete(1)


def test_the_answer_of_a_lost_script_counts(outside):
    outside.trial()
    outside.start()
    outside.pass_time(PATIENCE_S + 1)
    assert outside.searching.complete(1) == []
    decided = outside.beat()
    assert kinds(decided)[-1] is searcher.TrialIdled
    assert (outside.states(), outside.state.trials[1].complete) == (("ACTIVE", "ACTIVE"), True)


def test_the_answer_of_a_lost_script_counts_in_old_logs(outside):
    outside.trial()
    outside.start()
    outside.pass_time(PATIENCE_S + 1)
    outside.fold.apply(trial.Heartbeat(1, 1))
    decided = outside.searching.complete(1)
    assert kinds(decided)[-1] is searcher.TrialIdled
    assert (outside.states(), outside.state.trials[1].complete) == (("ACTIVE", "ACTIVE"), True)


def test_a_trial_that_ended_before_it_ran_has_its_operation_yet(outside):
    outside.trial()
    outside.end()
    outside.start()
    assert outside.searching.complete(1)


# -- signs of life


def test_silence_ends_a_trial(outside):
    outside.trial()
    outside.start()
    for _ in range(3):
        outside.pass_time(PATIENCE_S - 1)
        outside.beat()
    assert outside.states() == ("ACTIVE", "ACTIVE")
    decided = outside.pass_time(PATIENCE_S + 1)
    ended = next(e for e in decided if isinstance(e, searcher.TrialEnded))
    assert (ended.state, ended.reason) == ("ERROR", "its script was silent for too long")
    assert outside.states() == ("ERROR", "ERROR")


def test_a_lost_script_that_is_heard_again_goes_on(outside):
    outside.trial()
    outside.start()
    outside.pass_time(PATIENCE_S + 1)
    decided = outside.beat()
    assert kinds(decided) == [searcher.ExperimentActivated, searcher.RunOpened]
    assert decided[1].run == 1
    assert outside.states() == ("ACTIVE", "ACTIVE")
    outside.pass_time(PATIENCE_S + 1)
    assert outside.states() == ("ERROR", "ERROR")


def test_signs_of_life_of_old_logs_count(outside):
    outside.trial()
    outside.start()
    for _ in range(3):
        outside.pass_time(PATIENCE_S - 1)
        assert outside.old_beat() == []
    assert outside.states() == ("ACTIVE", "ACTIVE")
    outside.pass_time(PATIENCE_S + 1)
    assert outside.states() == ("ERROR", "ERROR")
    decided = outside.old_beat()
    assert kinds(decided) == [searcher.ExperimentActivated, searcher.RunOpened]
    assert outside.states() == ("ACTIVE", "ACTIVE")


def test_the_log_says_since_when_a_script_was_silent(outside):
    outside.trial()
    outside.start()
    outside.pass_time(100)
    outside.beat()
    heard_at = outside.fold.now
    overdue = next(e for e in outside.pass_time(500) if isinstance(e, searcher.TrialOverdue))
    assert (overdue.trial_id, overdue.run) == (1, 1)
    assert overdue.due_at == pytest.approx(heard_at + PATIENCE_S)


def test_signs_of_life_leave_nothing_in_the_log(outside):
    outside.trial()
    outside.start()
    for _ in range(20):
        assert outside.pass_time(60) == []
        assert outside.beat() == []


def test_a_report_about_the_past_changes_nothing(outside):
    """The run has ended, another one began, or the log itself gives it more time."""
    outside.trial()
    outside.start()
    late = [ReportScriptSilent(1, 1, 301.0), ReportScriptHeard(1, 1), ReportScriptSilent(9, 1, 301.0)]
    late.append(ReportScriptHeard(9, 1))
    for report in late:
        assert not outside.fold.rule(report).events
    outside.pass_time(PATIENCE_S - POLL_S)
    outside.start()
    outside.pass_time(PATIENCE_S - POLL_S)
    assert not outside.fold.rule(late[0]).events
    outside.pass_time(2 * POLL_S)
    assert not outside.fold.rule(ReportScriptHeard(1, 1)).events
    outside.end()
    for run in (1, 2):
        assert not outside.fold.rule(ReportScriptSilent(1, run, 1000.0)).events
        assert not outside.fold.rule(ReportScriptHeard(1, run)).events


def test_a_lost_script_may_say_how_it_ended(outside):
    outside.trial()
    outside.start()
    outside.pass_time(PATIENCE_S + 1)
    outside.searching.store_checkpoint(1, "c-2", 7)
    outside.end()
    assert outside.states() == ("COMPLETED", "COMPLETED")
    assert outside.beat() == []
    assert outside.start()["checkpoint"] == "c-2"


def test_a_killed_script_is_not_taken_up_by_its_heartbeat(outside):
    outside.trial()
    outside.start()
    outside.rule(KillTrial(trial_id=1, user="bob"))
    assert outside.states() == ("CANCELED", "CANCELED")
    assert outside.beat() == []
    assert outside.pass_time(PATIENCE_S + 1) == []


def test_nobody_is_silent_before_the_first_run(outside):
    outside.trial()
    assert outside.pass_time(100_000) == []
    assert outside.states() == ("ACTIVE", "ACTIVE")


# -- experiments


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        (("COMPLETED", "ERROR"), "COMPLETED"),
        (("ERROR", "ERROR"), "ERROR"),
        (("CANCELED", "CANCELED"), "CANCELED"),
        (("CANCELED", "ERROR"), "COMPLETED"),
    ],
)
def test_an_experiment_ends_with_the_last_of_its_trials(outside, ends, state):
    for name in ("a", "b"):
        outside.start(outside.trial(name))
    outside.end(1, ends[0])
    assert outside.states()[0] == "ACTIVE"
    outside.end(2, ends[1])
    assert outside.states()[0] == state


def test_and_goes_on_with_the_next(outside):
    outside.start(outside.trial("a"))
    outside.end()
    outside.start(outside.trial("b"))
    assert outside.states() == ("ACTIVE", "COMPLETED", "ACTIVE")
    outside.end(2)
    assert outside.states() == ("COMPLETED", "COMPLETED", "COMPLETED")


def test_what_people_may_do(outside):
    outside.start(outside.trial())
    refused(outside, lambda: outside.change("pause"), "is unmanaged")
    outside.change("activate")
    outside.change("cancel")
    assert outside.states() == ("CANCELED", "CANCELED")
    outside.change("archive")
    refused(outside, lambda: outside.change("activate"), "terminal")


def test_why_an_earlier_run_was_stopped_is_not_why_a_later_one_ends(outside):
    outside.trial()
    outside.start()
    outside.rule(KillTrial(trial_id=1, user="eve"))
    outside.start()
    outside.change("kill")
    ends = [event.reason for event in outside.fold.decided if isinstance(event, searcher.TrialEnded)]
    assert ends == ["killed by eve", "killed by bob"]


def test_an_experiment_without_trials_can_be_killed(outside):
    assert outside.states() == ("ACTIVE",)
    outside.change("kill")
    assert outside.states() == ("CANCELED",)


def test_nothing_of_a_deleted_one_comes_back(outside):
    outside.start(outside.trial())
    outside.pass_time(PATIENCE_S + 1)
    outside.change("delete")
    outside.beat()
    refused(outside, lambda: outside.start(), "DELETING")
    refused(outside, lambda: outside.trial("b"), "DELETING")
    outside.searching.decisions_after(checkpoints.ExperimentEmptied(1, True, "none left"))
    outside.beat()
    assert (outside.state.experiments, outside.state.request_keys) == ({}, {})
    refused(outside, lambda: outside.start(), "trial '1' not found")


def test_managed_ones_are_left_alone(searching):
    searching.submit({"name": "single", "max_length": 5})
    commands = (
        CreateTrial(experiment_id=1, request_id="x", hparams={}, user="ann"),
        OpenRun(trial_id=1, resume=True, user="ann"),
        EndTrial(trial_id=1, state="COMPLETED", user="ann"),
    )
    for command in commands:
        with pytest.raises(Refused, match="is managed"):
            searching.fold.rule(command)
    assert searching.decisions_after(trial.Heartbeat(1, 1)) == []
    for report in (ReportScriptSilent(1, 1, 1000.0), ReportScriptHeard(1, 1)):
        assert not searching.fold.rule(report).events
    assert searching.state.timers == {}


@pytest.mark.parametrize("name", ["", "a.b", "x" * 65, "gc-1"])
def test_a_name_that_is_no_token_or_that_of_a_deletion_is_refused(outside, name):
    refused(outside, lambda: outside.trial(name), "is not valid: it has letters")


def test_ended_as_something_else(outside):
    outside.start(outside.trial())
    outside.end()
    outside.end()
    refused(outside, lambda: outside.end(state="ERROR"), "has already ended as COMPLETED")


def test_without_a_length_there_is_no_operation(searching):
    outside = UnmanagedExperiment(searching, name="custom", max_length=None)
    outside.start(outside.trial())
    assert (outside.state.trials[1].seq, search_progress(outside.state, SearchProgress([1]))) == (
        0,
        {"1": 0.0},
    )
    assert search_state(outside.state, SearchState(1))["search"] is None


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (KillTrial(trial_id=1, user="eve"), "killed by eve"),
        (ChangeExperiment(experiment_id=1, action="kill", user="bob"), "killed by bob"),
    ],
)
def test_an_end_from_outside_says_who_wanted_it(searching, command, reason):
    outside = UnmanagedExperiment(searching)
    outside.trial()
    outside.start()
    outside.rule(command)
    (ended,) = [event for event in outside.fold.decided if isinstance(event, searcher.TrialEnded)]
    assert ended.reason == reason
