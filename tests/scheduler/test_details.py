"""What small changes of the rules showed that no other test asks for."""

import pytest

from det_contracts.events import scheduler, searcher, worker

GONE = "1.t9.1"


@pytest.mark.parametrize(
    "event",
    [
        scheduler.PreemptRequested(allocation_id=GONE, reason="late", within_s=1.0),
        scheduler.KillRequested(GONE, "late"),
        scheduler.TaskStopRequested("1.t9", "late"),
        scheduler.DaemonMarked(allocation_id=GONE, rank=0, reason="late"),
        scheduler.DeadlinePassed(GONE, 1.0),
        searcher.StopRequested(trial_id=9, allocation_id=GONE, kill=True, reason="late"),
        worker.AllocationStarted("w1", GONE),
        worker.AllocationExited(worker_id="w1", allocation_id=GONE, exit_code=0),
        scheduler.WorkerSwitched(worker_id="w9", enabled=False, draining=False, reason="late"),
        scheduler.SlotSwitched(worker_id="w9", slot_id=0, enabled=False, draining=False, reason="late"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_is_said_of_something_that_is_over_passes_by(cluster, event):
    cluster.worker()
    assert cluster.decisions_after(event) == []
    assert not cluster.state.allocations
    assert list(cluster.state.workers) == ["w1"]


def test_what_is_killed_or_asked_to_leave_is_terminating(cluster):
    cluster.job()
    cluster.worker(slots=2)
    for trial in (1, 2):
        cluster.request(trial)
        cluster.started(trial)
    assert {allocation.state for allocation in cluster.state.allocations.values()} == {"RUNNING"}
    cluster.stop(1)
    cluster.stop(2, kill=True)
    assert {allocation.state for allocation in cluster.state.allocations.values()} == {"TERMINATING"}


def test_a_gang_runs_once_all_its_parts_have_started(cluster):
    for id in ("w1", "w2"):
        cluster.worker(id, slots=1)
    cluster.request(1, slots=2)
    assert cluster.started(1, "w1") == []
    assert cluster.state.allocations["1.t1.1"].state == "ASSIGNED"
    cluster.started(1, "w2")
    assert cluster.state.allocations["1.t1.1"].state == "RUNNING"
