"""Runs that were killed with their agent, and runs that wait: what their chains lead to."""

import pytest

from det_contracts.events import scheduler, searcher, trial, worker
from services.why.chain import chain
from services.why.history import Cause, Entity, History
from services.why.subject import Subject, current_state_events
from tests.gateway import stories
from tests.why.test_chain import Story

RUN = "1.r1.1"


def sentences(made, subject):
    history = made.history()
    return [step.what for step in chain(history, current_state_events(history, subject)).steps]


@pytest.fixture
def running():
    """Trial 1 runs on worker w-1."""
    made = Story()
    made.begin()
    made.open(1)
    made.start(1)
    return made


def closed(made, event):
    """A person closes something; the scheduler kills the run for it."""
    switch = made.add(event, actor="user:bob", cause="request-3")
    made.add(scheduler.KillRequested(RUN, "agent disabled: w-1"), actor="scheduler", cause=str(switch))
    made.leave(1, exit_code=137)


ALLOCATION = Subject(
    kind="allocation", id=RUN, state="TERMINATED", experiment_id=1, trial_id=1, allocation_ids=(RUN,)
)


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (scheduler.WorkerSwitched(worker_id="w-1", enabled=False, reason="by bob"), "agent w-1 was disabled"),
        (
            scheduler.SlotSwitched(worker_id="w-1", slot_id=0, enabled=False, reason="by bob"),
            "slot 0 of agent w-1 was disabled",
        ),
    ],
    ids=["agent", "slot"],
)
def test_a_run_that_was_killed_with_its_agent_leads_to_who_closed_it(running, event, sentence):
    closed(running, event)
    assert sentences(running, ALLOCATION)[-2:] == ["run 1 of trial 1 was to be killed", sentence]


def test_a_disabled_agent_comes_before_an_earlier_stop_request(running):
    stop = searcher.StopRequested(trial_id=1, allocation_id=RUN, kill=False, reason="paused by ada")
    running.add(stop)
    running.add(scheduler.PreemptRequested(allocation_id=RUN, reason="paused by ada"), actor="scheduler")
    closed(running, scheduler.WorkerSwitched(worker_id="w-1", enabled=False, reason="by bob"))
    assert sentences(running, ALLOCATION)[-1] == "agent w-1 was disabled"


def test_a_run_that_did_not_stop_in_time_is_killed_for_the_same_cause(running):
    preemption = scheduler.PreemptRequested(allocation_id=RUN, reason="paused by ada")
    passed = running.add(preemption, scheduler.DeadlinePassed(RUN, 1_700_000_100.0), actor="scheduler")
    running.add(scheduler.KillRequested(RUN, "too slow"), actor="scheduler", cause=str(passed))
    running.leave(1, exit_code=137)
    assert sentences(running, ALLOCATION)[-3:] == [
        "run 1 of trial 1 was to be killed",
        "run 1 of trial 1 did not leave in time",
        "run 1 of trial 1 was asked to save and leave",
    ]


def test_a_job_that_waits_after_it_yielded_leads_to_whom_it_yielded(running):
    running.begin(2)
    running.open(2, experiment_id=2)
    wanted = scheduler.PreemptRequested(allocation_id=RUN, reason="priority 10", wanted_by="2.r2.1")
    running.add(wanted, actor="scheduler")
    running.leave(1)
    running.add(searcher.RunEnded(trial_id=1, run=1, restarts=0, reason="preempted"))
    running.add(stories.run_requested(1, run=2))
    job = Subject(kind="job", id="experiment-1", state="QUEUED", experiment_id=1, allocation_ids=("1.r1.2",))
    explanation = sentences(running, job)
    assert explanation[0] == "trial 1 asked for 1 slot for its run 2"
    assert "run 1 of trial 1 was asked to save and leave its slots to run 1 of trial 2" in explanation
    assert "trial 2 asked for 1 slot for its run 1" in explanation


def test_what_a_kill_lacks_is_asked_for():
    made = Story()
    made.add(scheduler.KillRequested(RUN, "agent disabled: w-1"), actor="scheduler", cause="far away")
    history = History()
    history.add(Entity("allocation", RUN), made.events)
    chain(history, made.events)
    assert Cause("far away", 1) in history.missing


def test_a_run_that_ends_with_a_member_names_the_member(running):
    first = worker.AllocationExited(worker_id="w-2", allocation_id=RUN, exit_code=3)
    left = running.add(first, actor="worker:w-2")
    running.add(scheduler.KillRequested(RUN, "a member left"), actor="scheduler", cause=str(left))
    running.leave(1, exit_code=137)
    assert "run 1 of trial 1 left w-2 with exit code 3" in sentences(running, ALLOCATION)


def test_what_a_users_own_search_asked_for_leads_to_who_posted_it():
    made = Story()
    made.begin()
    posted = searcher.OperationsPosted(
        experiment_id=1, triggered_by=1, operations=(), reason="posted by ada for event 1"
    )
    at = made.add(posted, actor="user:ada", cause="request-2")
    made.add(stories.trial_created(1), cause=str(at))
    made.add(searcher.OperationSet(1, 1, 4, "asked for"), cause=str(at))
    made.add(trial.OperationCompleted(trial_id=1, run=1, seq=1, length=4, metric=0.5), actor="trial:1")
    again = made.add(posted, actor="user:ada", cause="request-3")
    made.add(searcher.OperationSet(1, 2, 8, "asked for"), cause=str(again))
    history = made.history()
    steps = chain(history, made.events[-1:]).steps
    assert [step.position for step in steps if "asked for 0 operation" in step.what] == [again, at]
    assert steps[0].because == (again - 1, again)
