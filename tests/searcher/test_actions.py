"""What a person may do in which state (scheduling spec, 8.2), deletion, live changes, a run's grace."""

import pytest

from det_contracts.commands import ChangeExperiment, ReviseExperiment
from det_contracts.events import checkpoints, searcher, trial
from det_contracts.problems import Refused

SINGLE = {"name": "single", "max_length": 10}
ACTIONS = ("activate", "pause", "cancel", "kill", "archive", "unarchive", "delete")
NOT_OVER = "Experiment is not in terminal state."
TERMINAL = "experiment in terminal state"


def change(searching, action):
    result = searching.fold.rule(ChangeExperiment(experiment_id=1, action=action, user="bob"))
    searching.decide()
    return result


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def active(searching):
    searching.submit(SINGLE)


def paused(searching):
    searching.submit(SINGLE, activate=False)


def stopping(to):
    def reach(searching):
        searching.submit(SINGLE)
        searching.decisions_after(searcher.ExperimentStopping(1, to, "because"))

    return reach


def completed(searching):
    searching.submit(SINGLE)
    searching.finish(1)


def archived(searching):
    completed(searching)
    change(searching, "archive")


def deleting(searching):
    completed(searching)
    change(searching, "delete")


def delete_failed(searching):
    deleting(searching)
    searching.decisions_after(checkpoints.ExperimentEmptied(1, False, "the disk is read-only"))


def bad(state):
    return f"experiment in incompatible state {state}"


def undeletable(state):
    return f"cannot delete experiment in {state} state"


MATRIX = [
    (active, "ACTIVE", ["-", "PAUSED", "STOPPING_CANCELED", "STOPPING_KILLED", NOT_OVER, NOT_OVER]),
    (paused, "PAUSED", ["ACTIVE", "-", "CANCELED", "CANCELED", NOT_OVER, NOT_OVER]),
    (stopping("STOPPING_COMPLETED"), "STOPPING_COMPLETED", [bad, bad, "-", "forced", NOT_OVER, NOT_OVER]),
    (stopping("STOPPING_ERROR"), "STOPPING_ERROR", [bad, bad, "-", "forced", NOT_OVER, NOT_OVER]),
    (
        stopping("STOPPING_CANCELED"),
        "STOPPING_CANCELED",
        [bad, bad, "-", "STOPPING_KILLED", NOT_OVER, NOT_OVER],
    ),
    (stopping("STOPPING_KILLED"), "STOPPING_KILLED", [bad, bad, "-", "-", NOT_OVER, NOT_OVER]),
    (
        completed,
        "COMPLETED",
        [TERMINAL, TERMINAL, "-", "-", "archived", "Experiment is not archived.", "DELETING"],
    ),
    (
        archived,
        "COMPLETED",
        [TERMINAL, TERMINAL, "-", "-", "Experiment is already archived.", "in", "DELETING"],
    ),
    (deleting, "DELETING", [bad, bad, "-", "-", NOT_OVER, NOT_OVER]),
    (delete_failed, "DELETE_FAILED", [bad, bad, "-", "-", NOT_OVER, NOT_OVER, "DELETING"]),
]
CASES = [
    pytest.param(reach, state, action, expected, id=f"{reach.__name__}-{state}-{action}")
    for reach, state, row in MATRIX
    for action, expected in zip(ACTIONS, [*row, undeletable], strict=False)
]


@pytest.mark.parametrize(("reach", "state", "action", "expected"), CASES)
def test_the_matrix_of_actions(searching, reach, state, action, expected):
    reach(searching)
    before = searching.state.experiments[1]
    assert before.state == state
    expected = expected(state) if callable(expected) else expected
    if " " in expected:
        with pytest.raises(Refused) as refusal:
            change(searching, action)
        assert refusal.value.problem.message.startswith(expected)
        assert searching.state.experiments[1] == before
        return
    result = change(searching, action)
    after = searching.state.experiments[1]
    if expected == "-":
        assert not result.events
        assert after == before
    elif expected in ("archived", "in"):
        assert after.archived is (expected == "archived")
    elif expected == "forced":
        assert (after.state, after.forced) == (state, True)
    else:
        assert after.state == expected


def test_a_forced_kill_ends_what_runs_and_leaves_the_outcome(searching):
    stopping("STOPPING_COMPLETED")(searching)
    searching.fold.rule(ChangeExperiment(experiment_id=1, action="kill", user="bob"))
    (stop,) = of(searcher.StopRequested, searching.decide())
    assert stop.kill
    searching.end_run(1, "killed", None, "killed by bob")
    assert searching.state.experiments[1].state == "COMPLETED"
    assert searching.state.trials[1].state == "COMPLETED"


def test_deletion_waits_for_the_checkpoints_and_then_removes_the_records(searching):
    deleting(searching)
    searching.decisions_after(checkpoints.ExperimentEmptied(1, True, "nothing was left"))
    state = searching.state
    assert (state.experiments, state.trials, state.searches, state.tasks) == ({}, {}, {}, {})
    with pytest.raises(Refused, match="experiment '1' not found"):
        change(searching, "delete")
    assert searching.submit(SINGLE) == 2


def test_a_deletion_that_failed_may_be_tried_again(searching):
    delete_failed(searching)
    assert searching.state.experiments[1].reason == "the disk is read-only"
    change(searching, "delete")
    assert searching.state.experiments[1].state == "DELETING"
    searching.decisions_after(checkpoints.ExperimentEmptied(1, True, ""))
    assert not searching.state.experiments


def test_live_changes_say_who_and_what(searching):
    searching.submit(SINGLE)
    result = searching.fold.rule(
        ReviseExperiment(experiment_id=1, changes={"name": "b", "notes": "x"}, user="bob")
    )
    assert result.events[0].reason == "name, notes changed by bob"
    assert not searching.fold.rule(ReviseExperiment(experiment_id=1, changes={}, user="bob")).events
    with pytest.raises(Refused, match="experiment '9' not found"):
        searching.fold.rule(ReviseExperiment(experiment_id=9, changes={"name": "b"}, user="bob"))


def test_a_run_that_gave_up_and_stays_is_killed_and_keeps_its_reason(searching):
    searching.submit({"name": "random", "max_length": 10, "max_trials": 1})
    searching.decisions_after(trial.ExitedEarly(1, 1, "EXITED_REASON_INVALID_HP"))
    assert not searching.fold.pass_time(9)
    (overdue,) = searching.fold.pass_time(2)
    assert (overdue.trial_id, overdue.run) == (1, 1)
    (stop,) = of(searcher.StopRequested, searching.decide())
    assert stop.kill
    decided = searching.end_run(1, "killed", None, stop.reason)
    (ended,) = of(searcher.TrialEnded, decided)
    assert (ended.state, ended.early_exit) == ("COMPLETED", "INVALID_HP")


def test_a_run_that_gave_up_and_leaves_is_not_waited_for(searching):
    searching.submit(SINGLE)
    searching.decisions_after(trial.ExitedEarly(1, 1, "EXITED_REASON_INVALID_HP"))
    searching.end_run(1)
    assert not searching.state.timers
    assert not searching.fold.pass_time(60)
