"""Trials: completions, and what the end of a run means (scheduling spec, 8.3)."""

import pytest

from det_contracts.events import searcher, trial

SINGLE = {"name": "single", "max_length": 10}
ASHA = {"name": "adaptive_asha", "max_length": 16, "max_trials": 8, "mode": "aggressive", "divisor": 2}


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def experiment(searching):
    return searching.state.experiments[1].state


def test_every_completion_is_answered(searching):
    searching.submit(SINGLE)
    (idled,) = of(searcher.TrialIdled, searching.complete(1))
    assert (idled.seq, idled.final) == (1, True)


def test_a_repeated_completion_has_no_effect(searching):
    searching.submit(ASHA)
    searching.complete(1, 0.3)
    before = searching.state.searches[1]
    assert searching.complete(1, 0.1, seq=1) == []
    assert searching.state.searches[1] == before


def test_a_completion_of_an_earlier_run_has_no_effect(searching):
    searching.submit(SINGLE, max_restarts=1)
    searching.end_run(1, "failed", 1, "exit code 1")
    assert searching.state.trials[1].run == 2
    assert searching.complete(1, run=1) == []
    assert not searching.state.trials[1].complete


@pytest.mark.parametrize("repeated", ["c1", "c2", "c3"])
def test_a_repeated_checkpoint_does_not_set_a_trial_back(searching, repeated):
    """The broker may store a message twice, and the repeat of an older checkpoint may come last."""
    searching.submit(SINGLE, max_restarts=1)
    steps = {"c1": 2, "c2": 4, "c3": 6}
    for uuid in steps:
        searching.store_checkpoint(1, uuid, steps[uuid])
    before = searching.state.trials[1]
    assert searching.store_checkpoint(1, repeated, steps[repeated]) == []
    assert searching.state.trials[1] == before
    (request,) = of(searcher.RunRequested, searching.end_run(1, "failed", 1, "exit code 1"))
    assert (request.checkpoint, request.steps_completed) == ("c3", 6)


def test_a_promotion_while_the_script_leaves_starts_another_run(searching):
    searching.submit(ASHA)
    searching.complete(1, 0.1)
    searching.acknowledge(1)
    promoted = searching.complete(2, 0.9)
    (set_,) = of(searcher.OperationSet, promoted)
    assert (set_.trial_id, set_.seq) == (1, 2)
    assert set_.reason == "the search wants it trained further"
    (request,) = of(searcher.RunRequested, searching.end_run(1))
    assert (request.trial_id, request.run) == (1, 2)
    assert request.reason == f"the search wants it trained to length {set_.length}"


NO_MORE = {
    0: "not tried again, as max_restarts is 0",
    1: "not tried again: it was restarted once already, as often as max_restarts allows",
    5: "not tried again: it was restarted 5 times already, as often as max_restarts allows",
}


@pytest.mark.parametrize("restarts", NO_MORE)
def test_failures_restart_up_to_the_limit(searching, restarts):
    searching.submit(SINGLE, max_restarts=restarts)
    for attempt in range(1, restarts + 1):
        decided = searching.end_run(1, "failed", 1, "exit code 1")
        (ended,) = of(searcher.RunEnded, decided)
        assert ended.restarts == attempt
        assert f"restart {attempt} of {restarts}" in ended.reason
    (last,) = of(searcher.TrialEnded, searching.end_run(1, "failed", 1, "exit code 1"))
    assert last.reason == f"exit code 1; {NO_MORE[restarts]}"
    assert searching.state.trials[1].state == "ERROR"
    assert experiment(searching) == "ERROR"


def test_a_lost_worker_does_not_count(searching):
    searching.submit(SINGLE, max_restarts=0)
    (ended,) = of(searcher.RunEnded, searching.end_run(1, "worker_lost", None, "worker w was lost"))
    assert ended.restarts == 0
    assert searching.state.trials[1].run == 2


def test_exit_zero_without_acknowledgement_ends_the_trial(searching):
    searching.submit(SINGLE)
    decided = searching.end_run(1)
    (ended,) = of(searcher.TrialEnded, decided)
    assert (ended.state, ended.early_exit) == ("COMPLETED", "USER_REQUESTED_STOP")
    assert experiment(searching) == "COMPLETED"


def test_a_crash_after_everything_is_answered_is_an_error_without_a_retry(searching):
    searching.submit(SINGLE)
    searching.complete(1)
    searching.end_run(1, "failed", 1, "exit code 1")
    assert searching.state.trials[1].state == "ERROR"


def test_an_acknowledged_exit_is_no_error_whatever_its_code(searching):
    searching.submit(SINGLE)
    searching.complete(1)
    searching.acknowledge(1)
    searching.end_run(1, "failed", 3, "exit code 3")
    assert searching.state.trials[1].state == "COMPLETED"


def test_a_script_that_leaves_unasked_without_having_done_anything_does_not_run_for_ever(searching):
    """It ran again every second or two, and each run was in the log for good."""
    searching.submit(SINGLE)
    for restarts in range(1, 6):
        searching.acknowledge(1)
        (ended,) = of(searcher.RunEnded, searching.end_run(1, asked_to_leave=False))
        assert ended.restarts == restarts
    searching.acknowledge(1)
    (final,) = of(searcher.TrialEnded, searching.end_run(1, asked_to_leave=False))
    assert final.state == "ERROR"
    assert "nobody had asked" in final.reason


def test_one_that_leaves_when_asked_or_after_some_work_uses_up_no_restart(searching):
    searching.submit({**ASHA, "max_trials": 2, "max_concurrent_trials": 2, "max_length": 2})
    for more in ({"asked_to_leave": True}, {}):
        searching.acknowledge(1)
        (ended,) = of(searcher.RunEnded, searching.end_run(1, **more))
        assert ended.restarts == 0
    searching.store_checkpoint(1, "a" * 8, 1)
    searching.acknowledge(1)
    (ended,) = of(searcher.RunEnded, searching.end_run(1, asked_to_leave=False))
    assert ended.restarts == 0


@pytest.mark.parametrize("outcome", [("succeeded", 0), ("failed", 1)])
def test_invalid_hyperparameters_are_replaced(searching, outcome):
    searching.submit({"name": "random", "max_length": 10, "max_trials": 2})
    searching.decisions_after(trial.ExitedEarly(1, 1, "EXITED_REASON_INVALID_HP"))
    decided = searching.end_run(1, *outcome, "exit")
    (ended,) = of(searcher.TrialEnded, decided)
    assert (ended.state, ended.early_exit) == ("COMPLETED", "INVALID_HP")
    assert [c.trial_id for c in of(searcher.TrialCreated, decided)] == [3]


def test_a_killed_run_of_a_paused_trial_runs_again_later(searching):
    searching.submit(SINGLE)
    searching.fold.apply(searcher.ExperimentPaused(1, "paused"))
    searching.decide()
    (ended,) = of(searcher.RunEnded, searching.end_run(1, "killed", None, "did not preempt"))
    assert ended.restarts == 0
    assert searching.state.trials[1].state == "ACTIVE"


def test_a_trial_that_waits_is_closed_when_the_search_needs_it_no_more(searching):
    searching.submit({**ASHA, "max_trials": 2, "max_concurrent_trials": 2, "max_length": 2})
    for id in list(searching.state.trials):
        searching.complete(id, float(id))
        searching.acknowledge(id)
        searching.end_run(id)
    while experiment(searching) == "ACTIVE":
        (open_trial,) = [t for t in searching.state.trials.values() if not t.complete]
        searching.finish(open_trial.id, 0.0)
    assert experiment(searching) == "COMPLETED"
    assert {t.state for t in searching.state.trials.values()} == {"COMPLETED"}


def test_events_of_other_trials_are_ignored(searching):
    searching.submit(SINGLE)
    assert searching.decisions_after(trial.Progressed(99, 1, 1.0), trial.ExitedEarly(99, 1, "x")) == []


def test_every_decision_carries_a_reason(searching):
    searching.submit(ASHA)
    for id in (1, 2, 3):
        searching.finish(id, float(id))
    assert searching.fold.decided
    assert all(event.reason for event in searching.fold.decided)


def test_what_another_try_would_meet_again_is_not_tried_again(searching):
    searching.submit(SINGLE, max_restarts=5)
    decided = searching.end_run(1, "failed", 1, "exit code 1: SyntaxError: x", permanent=True)
    (ended,) = of(searcher.TrialEnded, decided)
    assert (ended.state, ended.restarts) == ("ERROR", 0)
    assert (
        ended.reason
        == "exit code 1: SyntaxError: x; not tried again, since another attempt would fail in the same way"
    )


def test_a_script_that_stops_early_or_does_not_use_the_search_ends_well(searching):
    searching.submit(SINGLE)
    (ended,) = of(searcher.TrialEnded, searching.end_run(1))
    assert ended.state == "COMPLETED"
    assert "fine if it stopped early on purpose" in ended.reason
    assert "or does not use the searcher" in ended.reason
