"""Tasks that nobody uses: ended after their time, unless they are used again."""

from det_contracts.commands import StateIdle, StopTask
from det_contracts.events import scheduler, worker
from tests.scheduler.test_own_tasks import exited, of, submit


def running(cluster):
    cluster.worker()
    submit(cluster, kind="NOTEBOOK")
    cluster.decisions_after(worker.AllocationStarted("w1", "t-1.1"))


def idle(cluster, idle=True, within_s=60.0):
    return cluster.rule(StateIdle(task_id="t-1", idle=idle, within_s=within_s, user="ann"))


def due(cluster):
    return cluster.fold.timers.due(cluster.state)


def expired(cluster, now):
    return [event for _, event in cluster.fold.timers.facts(cluster.state, now)]


def passed(cluster, due_at):
    return cluster.decisions_after(scheduler.DeadlinePassed("t-1.1", due_at))


def test_idle_for_its_whole_time_it_is_ended(cluster):
    running(cluster)
    idle(cluster)
    at = due(cluster)
    assert at is not None
    # Said again it is idle since the first time.
    cluster.fold.now += 5
    idle(cluster)
    assert due(cluster) == at
    (kill,) = of(scheduler.KillRequested, passed(cluster, at))
    assert kill.reason == "idle for more than 60 s (idle_timeout)"
    (ended,) = of(scheduler.AllocationEnded, exited(cluster, code=137))
    assert (ended.outcome, ended.reason) == ("killed", kill.reason)


def test_used_again_it_goes_on(cluster):
    running(cluster)
    assert idle(cluster, False) == []
    idle(cluster)
    first = due(cluster)
    idle(cluster, False)
    assert due(cluster) is None
    assert expired(cluster, first + 1) == []
    idle(cluster)
    assert [event.due_at for event in expired(cluster, due(cluster))] == [due(cluster)]


def test_who_is_being_ended_is_idle_for_nothing(cluster):
    running(cluster)
    cluster.rule(StopTask(task_id="t-1", user="ann"))
    assert idle(cluster) == []
    exited(cluster, code=137)
    assert idle(cluster) == []
