"""A pool that grows: what its engine reports, and what the scheduler then asks for."""

from det_contracts.events import scheduler, worker
from det_contracts.provisioning import ReportWorkers, SeenWorker
from det_contracts.queries import Waiting
from services.scheduler.queries import waiting

IDLE_S, START_S, NOTICE_S = 100.0, 50.0, 20.0


def of(kind, events):
    return [event for event in events if type(event) is kind]


def wanted(events):
    return [event.worker_id for event in of(scheduler.WorkerWanted, events)]


def released(events):
    return [event.worker_id for event in of(scheduler.WorkerReleased, events)]


def report(cluster, id="default-1", phase="running", detail="job 7", **more):
    worker = SeenWorker(worker_id=id, phase=phase, detail=detail, **more)
    return cluster.rule(ReportWorkers(pool="default", workers=(worker,)))


def later(cluster, seconds):
    cluster.fold.pass_time(seconds)
    return cluster.fold.decide()


def leaves(cluster, id="default-1"):
    return cluster.decisions_after(worker.WorkerLeft(id, cluster.state.workers[id].session))


def why(cluster):
    return next(iter(waiting(cluster.state, Waiting()).values()))
