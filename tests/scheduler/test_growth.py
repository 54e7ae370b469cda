"""Pools that get workers by themselves: what they ask for, give back, and make of engines that lie."""

import pytest

from det_contracts.commands import SwitchWorker
from det_contracts.events import scheduler
from det_contracts.problems import Refused
from det_contracts.provisioning import ReportWorkers, SeenWorker
from det_contracts.queries import Fits, Provisioning
from services.scheduler.domain.provisioned import MIN_BACKOFF_S, MISSING_GRACE_S
from services.scheduler.policy.autoscale import demand_of
from services.scheduler.policy.book import book_of
from services.scheduler.policy.records import PoolSettings, Request
from services.scheduler.queries import fits, provisioning
from tests.scheduler.growing import IDLE_S, START_S, later, leaves, of, released, report, wanted, why


def test_a_pool_asks_for_as_many_workers_as_the_queue_could_use(grow):
    cluster = grow()
    (event,) = of(scheduler.WorkerWanted, cluster.request(1, slots=1))
    assert event.worker_id == "default-1"
    assert event.reason == "1 request waits for 1 slot that no worker has; first of experiment 1"
    assert cluster.request(2, slots=1) == []
    assert wanted(cluster.request(3, slots=1)) == ["default-2"]
    assert wanted(cluster.request(4, slots=4)) == ["default-3"]
    assert cluster.request(5, slots=6) == []


def test_a_pool_without_a_provider_asks_for_nothing(cluster):
    cluster.job(1)
    assert cluster.request(1) == []


def test_what_could_never_run_asks_for_nothing(grow):
    cluster = grow(max_instances=2)
    assert cluster.request(1, slots=3) == []
    assert cluster.request(2, slots=6) == []
    assert wanted(cluster.request(3, slots=4)) == ["default-1", "default-2"]


def test_the_worker_that_registers_takes_what_waits_and_nothing_more_is_asked_for(grow):
    cluster = grow()
    cluster.request(1, slots=2)
    report(cluster)
    events = cluster.worker("default-1", slots=2)
    (assigned,) = of(scheduler.AllocationAssigned, events)
    assert assigned.parts[0].worker_id == "default-1"
    assert wanted(events) == []


def test_an_idle_worker_is_given_back_with_the_reason_and_gets_no_more_work(grow):
    cluster = grow()
    cluster.request(1)
    report(cluster)
    cluster.worker("default-1")
    cluster.started(1, "default-1")
    assert released(later(cluster, 10 * IDLE_S)) == []
    cluster.exited(1, worker_id="default-1")
    assert released(later(cluster, IDLE_S - 1)) == []
    (event,) = of(scheduler.WorkerReleased, later(cluster, 1))
    assert event.reason == "it had no work for 100 s (max_idle_agent_period)"
    assert not event.failed
    events = cluster.request(2)
    assert of(scheduler.AllocationAssigned, events) == []
    assert wanted(events) == ["default-2"]


def test_a_worker_that_is_given_back_and_registers_again_gets_no_work_either(grow):
    cluster = grow(max_instances=1)
    cluster.request(1)
    cluster.worker("default-1")
    cluster.started(1, "default-1")
    cluster.exited(1, worker_id="default-1")
    later(cluster, IDLE_S)
    cluster.worker("default-1", session="s2")
    assert of(scheduler.AllocationAssigned, cluster.request(2)) == []


def test_one_that_an_engine_brings_up_when_its_pool_knows_it_no_more_gets_no_work(grow):
    cluster = grow(max_instances=1)
    cluster.request(1)
    cluster.worker("default-1")
    cluster.exited(1, worker_id="default-1")
    later(cluster, IDLE_S)
    leaves(cluster)
    (event,) = of(scheduler.WorkerDismissed, report(cluster, phase="over", detail="CANCELLED"))
    assert event.worker_id == "default-1"
    cluster.worker("default-1", session="s2")
    assert of(scheduler.AllocationAssigned, cluster.request(2)) == []


def test_work_that_comes_meanwhile_keeps_a_worker(grow):
    cluster = grow()
    cluster.request(1)
    cluster.worker("default-1")
    cluster.exited(1, worker_id="default-1")
    later(cluster, IDLE_S - 1)
    cluster.request(2)
    assert released(later(cluster, 2)) == []
    cluster.exited(2, worker_id="default-1")
    assert released(later(cluster, IDLE_S - 1)) == []
    assert released(later(cluster, 1)) == ["default-1"]


def test_an_idle_worker_stays_while_a_gang_waits_for_it_and_others(grow):
    cluster = grow()
    cluster.request(1, slots=4)
    cluster.worker("default-1")
    assert released(later(cluster, 2 * IDLE_S)) == []
    (assigned,) = of(scheduler.AllocationAssigned, cluster.worker("default-2"))
    assert [part.worker_id for part in assigned.parts] == ["default-1", "default-2"]


def test_a_pool_has_its_least_number_of_workers_without_any_work(grow):
    cluster = grow(min_instances=2)
    assert sorted(cluster.state.provisioned) == ["default-1", "default-2"]
    cluster.worker("default-1")
    cluster.worker("default-2")
    assert released(later(cluster, 2 * IDLE_S)) == []
    leaves(cluster)
    assert wanted(report(cluster, phase="over")) == ["default-3"]


def test_a_worker_that_nobody_waits_for_any_more_is_given_back_before_it_comes(grow):
    cluster = grow()
    cluster.request(1)
    report(cluster, phase="queued")
    cluster.stop(1, kill=True)
    (event,) = of(scheduler.WorkerReleased, later(cluster, IDLE_S))
    assert "nothing waits for it any more" in event.reason
    (over,) = report(cluster, phase="over", detail="CANCELLED")
    assert over == scheduler.WorkerDismissed(worker_id="default-1", pool="default", reason="CANCELLED")


def test_time_spent_in_the_engines_queue_is_no_time_to_register(grow):
    cluster = grow(max_idle_s=1e9)
    cluster.request(1)
    report(cluster, phase="queued")
    assert later(cluster, 100 * START_S) == []
    report(cluster)
    assert later(cluster, START_S - 1) == []
    (event,) = of(scheduler.WorkerReleased, later(cluster, 1))
    assert event.failed
    assert "did not register in time" in event.reason


def test_a_job_that_is_put_back_into_the_queue_has_its_time_again(grow):
    cluster = grow(max_idle_s=1e9)
    cluster.request(1)
    report(cluster)
    later(cluster, START_S - 1)
    report(cluster, phase="queued")
    assert later(cluster, 10 * START_S) == []
    report(cluster)
    assert later(cluster, START_S - 1) == []
    assert released(later(cluster, 1)) == ["default-1"]


def test_after_failures_a_pool_waits_longer_each_time_and_says_so(grow):
    cluster = grow()
    cluster.request(1)
    pause = MIN_BACKOFF_S
    for number in range(1, 4):
        (event,) = report(cluster, f"default-{number}", phase="over", detail="sbatch: invalid partition")
        assert event.failed
        assert "1 failed" in why(cluster) or number > 1
        assert "sbatch: invalid partition" in why(cluster)
        assert wanted(later(cluster, pause - 1)) == []
        assert wanted(later(cluster, 1)) == [f"default-{number + 1}"]
        pause *= 2
    cluster.worker("default-4")
    assert cluster.state.supplies["default"].failures == 0


def test_a_list_that_lags_behind_loses_no_worker(grow):
    cluster = grow()
    cluster.request(1)
    report(cluster, phase="queued")
    report(cluster, phase="missing", detail="")
    later(cluster, MISSING_GRACE_S - 1)
    report(cluster, phase="queued")
    assert of(scheduler.WorkerDismissed, later(cluster, MISSING_GRACE_S)) == []
    report(cluster, phase="missing", detail="")
    (event,) = of(scheduler.WorkerDismissed, later(cluster, MISSING_GRACE_S))
    assert event.reason == "its engine does not list it any more"
    assert event.failed


def test_a_worker_that_is_here_is_believed_more_than_its_engine(grow):
    cluster = grow()
    cluster.request(1)
    cluster.worker("default-1")
    report(cluster, phase="over", detail="COMPLETED")
    assert of(scheduler.WorkerDismissed, later(cluster, 10 * MISSING_GRACE_S)) == []
    (event,) = of(scheduler.WorkerDismissed, leaves(cluster))
    assert not event.failed


def test_a_worker_that_is_out_of_touch_for_long_is_given_up(grow):
    cluster = grow()
    cluster.request(1)
    report(cluster)
    cluster.worker("default-1")
    cluster.decisions_after(scheduler.WorkerLost("default-1", "no heartbeat"))
    assert released(later(cluster, START_S - 1)) == []
    (event,) = of(scheduler.WorkerReleased, later(cluster, 1))
    assert "out of touch" in event.reason
    assert not event.failed


def test_an_id_that_a_worker_has_already_is_passed_over(grow):
    cluster = grow()
    cluster.worker("default-1", pool="other")
    assert wanted(cluster.request(1)) == ["default-2"]


def test_a_worker_that_a_person_closed_offers_nothing(grow):
    cluster = grow()
    cluster.request(1)
    cluster.worker("default-1")
    cluster.exited(1, worker_id="default-1")
    cluster.rule(SwitchWorker(worker_id="default-1", enabled=False, user="admin"))
    assert wanted(cluster.request(2)) == ["default-2"]


def test_waiting_requests_say_that_the_engine_is_unreachable(grow):
    cluster = grow()
    cluster.request(1)
    (event,) = cluster.fold.rule(ReportWorkers(pool="default", problem="squeue: no answer")).events
    assert event.problem == "squeue: no answer"
    assert "The pool cannot grow: its engine (process) does not answer: squeue: no answer" in why(cluster)
    assert cluster.fold.rule(ReportWorkers(pool="default", problem="squeue: no answer")).events == []
    (event,) = cluster.fold.rule(ReportWorkers(pool="default")).events
    assert event.problem == ""
    assert "The pool grows: default-1 was asked for and is wanted." in why(cluster)


def test_waiting_requests_say_that_the_pool_is_full(grow):
    cluster = grow(max_instances=1)
    cluster.request(1, slots=2)
    cluster.worker("default-1")
    cluster.request(2, slots=2)
    assert "The pool has as many workers as it may (max_instances is 1)." in why(cluster)


def test_a_report_that_says_nothing_new_or_of_nobody_changes_nothing(grow):
    cluster = grow()
    cluster.request(1)
    report(cluster)
    assert report(cluster) == []
    for stranger in (ReportWorkers(pool="default", workers=(SeenWorker(worker_id="x", phase="over"),)),):
        assert cluster.fold.rule(stranger).events == []
    with pytest.raises(Refused):
        cluster.rule(ReportWorkers(pool="nowhere"))


def test_the_provisioner_gets_the_demand(grow):
    cluster = grow()
    cluster.request(1)
    (row,) = provisioning(cluster.state, Provisioning())
    assert (row["pool"], row["newest"]) == ("default", 1)
    (worker,) = row["workers"]
    assert (worker["id"], worker["phase"], worker["released"]) == ("default-1", "wanted", "")
    assert provisioning(cluster.state, Provisioning(pool="default")) == [row]
    assert provisioning(cluster.state, Provisioning(pool="nowhere")) == []


def test_what_workers_to_come_could_run_is_taken(grow):
    cluster = grow()
    cluster.worker("here", slots=1)
    assert fits(cluster.state, Fits(pool="default", slots=6)) == ""
    assert fits(cluster.state, Fits(pool="default", slots=8))
    assert fits(cluster.state, Fits(pool="default", slots=4, single_agent=True))


def test_a_pool_that_grows_no_more_gives_back_what_it_has(grow):
    cluster = grow()
    cluster.request(1)
    cluster.worker("default-1")
    cluster.exited(1, worker_id="default-1")
    cluster.pool("default")
    assert released(later(cluster, IDLE_S)) == ["default-1"]
    assert wanted(cluster.request(2)) == []


def test_what_is_placed_in_the_same_pass_does_not_count():
    requests = [Request(allocation_id=str(n), job_id="j", group="7", slots=1) for n in range(5)]
    book = book_of(PoolSettings(), waiting=requests)
    demand = demand_of(book, slots_per_instance=1, max_zero_slot=0, placed={"0", "1"})
    assert demand.instances == 3
    assert demand_of(book, slots_per_instance=1, max_zero_slot=0, stop_at=2).instances == 2
