"""What concerns all trials of an experiment reaches them a few at a time, and all of them in the end."""

import pytest

from det_contracts.commands import ChangeExperiment
from det_contracts.events import checkpoints, searcher
from services.searcher import react
from services.searcher.app import RULES
from services.searcher.domain import state as records
from services.searcher.domain.state import trial_status

MANY = 10
AT_ONCE = 3
RANDOM = {"name": "random", "max_length": 10, "max_trials": MANY}


@pytest.fixture(autouse=True)
def _small_portions(monkeypatch):
    monkeypatch.setattr(records, "MAX_TRIALS_PER_PASS", AT_ONCE)
    monkeypatch.setattr(react, "MAX_TRIALS_PER_PASS", AT_ONCE)


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def change(searching, action):
    searching.fold.rule(ChangeExperiment(experiment_id=1, action=action, user="bob"))
    return searching.decide()


def keys(searching, event):
    """The records that an event moves, without what follows."""
    before = dict(searching.fold._touched)
    searching.fold.apply(event)
    return set(searching.fold._touched) - set(before)


@pytest.mark.parametrize(
    ("action", "decided"),
    [("pause", searcher.StopRequested), ("cancel", searcher.StopRequested), ("kill", searcher.StopRequested)],
)
def test_all_runs_hear_of_it_and_none_twice(searching, action, decided):
    searching.submit(RANDOM)
    stops = of(decided, change(searching, action))
    assert sorted(stop.trial_id for stop in stops) == list(range(1, MANY + 1))
    assert searching.state.experiments[1].called is None


def test_trials_that_wait_end_and_ask_again_all_of_them(searching):
    searching.submit(RANDOM, activate=False)
    assert len(of(searcher.RunRequested, change(searching, "activate"))) == MANY
    change(searching, "pause")
    for trial_id in range(1, MANY + 1):
        searching.end_run(trial_id, "killed")
    assert len(of(searcher.RunRequested, change(searching, "activate"))) == MANY
    change(searching, "pause")
    for trial_id in range(1, MANY + 1):
        searching.end_run(trial_id, "killed")
    decided = change(searching, "kill")
    assert len(of(searcher.TrialEnded, decided)) == MANY
    assert of(searcher.ExperimentEnded, decided)[0].state == "CANCELED"


def test_one_event_moves_a_few_records(searching):
    searching.submit(RANDOM)
    moved = keys(searching, searcher.ExperimentPaused(1, "paused by bob"))
    assert {key for key in moved if key[0] != "tallies"} == {
        ("experiments", 1),
        *(("trials", id) for id in range(1, AT_ONCE + 1)),
    }
    stop = searcher.StopRequested(trial_id=1, allocation_id="", kill=False, reason="paused by bob")
    assert keys(searching, stop) == {("trials", AT_ONCE + 1)}


def test_a_trial_about_which_nothing_can_be_decided_holds_up_no_other(searching):
    searching.submit(RANDOM)
    searching.fold.apply(searcher.ExperimentPaused(1, "paused by bob"))
    del searching.fold._touched["trials", AT_ONCE]
    stops = of(searcher.StopRequested, searching.decide())
    assert {stop.trial_id for stop in stops} == set(range(1, MANY + 1)) - {AT_ONCE}


def test_a_change_of_mind_reaches_all_that_heard_of_the_first(searching):
    searching.submit(RANDOM)
    searching.fold.apply(searcher.ExperimentPaused(1, "paused by bob"))
    key = next(key for key in searching.fold._touched if key[0] == "trials")
    (stop,) = RULES.react(searching.state, key)
    searching.fold.apply(stop, searcher.ExperimentActivated(1, "activated by bob"))
    searching.decide()
    statuses = [trial_status(trial) for _, trial in sorted(searching.state.trials.items())]
    assert statuses == ["leaving"] + ["running"] * (MANY - 1)
    searching.end_run(1, "killed")
    assert searching.state.trials[1].run == 2


def test_an_experiment_is_deleted_in_portions(searching):
    searching.submit(RANDOM)
    for trial_id in range(1, MANY + 1):
        searching.finish(trial_id)
    change(searching, "delete")
    decided = searching.decisions_after(
        checkpoints.ExperimentEmptied(1, True, "none of its checkpoints is left")
    )
    *some, last = decided
    assert [len(portion.trial_ids) for portion in some] == [3, 3, 3, 1]
    assert sorted(id for portion in some for id in portion.trial_ids) == list(range(1, MANY + 1))
    assert all(
        portion.task_ids[0].startswith("1.") and len(portion.task_ids) == len(portion.trial_ids)
        for portion in some
    )
    assert last == searcher.ExperimentDeleted(1, "DELETED", "none of its checkpoints is left")
    state = searching.state
    assert not any((state.trials, state.tasks, state.searches, list(state.trials_by_status)))


def test_an_old_log_names_all_trials_at_the_end(searching):
    searching.submit(RANDOM)
    for trial_id in range(1, MANY + 1):
        searching.finish(trial_id)
    change(searching, "delete")
    searching.fold.apply(searcher.ExperimentDeleted(1, "DELETED", "gone", tuple(range(1, MANY + 1))))
    state = searching.state
    assert not any((state.trials, state.tasks, state.searches, list(state.trials_by_status)))
