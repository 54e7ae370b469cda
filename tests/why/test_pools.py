"""Why a pool grew, shrank, or could not."""

from det_contracts.envelope import Recorded
from det_contracts.events import scheduler, worker
from services.why.chain import chain
from services.why.history import Cause, Entity, History
from services.why.subject import Subject, current_state_events

EVENTS = [
    scheduler.WorkerWanted(worker_id="gpu-1", pool="gpu", number=1, reason="1 request waits"),
    scheduler.WorkerWanted(worker_id="cpu-1", pool="cpu", number=1, reason="of another pool"),
    scheduler.ProvisionReported(
        worker_id="gpu-1", pool="gpu", phase="running", detail="job 7", reason="reported"
    ),
    worker.WorkerRegistered(
        worker_id="gpu-1",
        session="s",
        pool="gpu",
        address="",
        version="",
        slots=(),
        reads_after=0,
        running=(),
    ),
    scheduler.WorkerReleased(worker_id="gpu-1", pool="gpu", reason="it had no work for 5 s"),
    worker.WorkerLeft("gpu-1", "s"),
    scheduler.WorkerDismissed(worker_id="gpu-1", pool="gpu", reason="job 7: CANCELLED"),
    scheduler.EngineReported(pool="gpu", problem="squeue: no answer", reason="reported"),
]


def steps_about(kind, id):
    history = History()
    for thing in (Entity("pool", "gpu"), Entity("worker", "gpu-1"), Entity("worker", "cpu-1")):
        history.add(thing, ())
    history.add(
        Cause("", 0),
        [Recorded(at, event, str(at), "scheduler", float(at), "") for at, event in enumerate(EVENTS)],
    )
    subject = Subject(kind=kind, id=id, state="", experiment_id=0)
    return [(step.what, step.reason) for step in chain(history, current_state_events(history, subject)).steps]


def test_a_workers_story_goes_back_to_who_waited_for_it():
    steps = steps_about("worker", "gpu-1")
    assert steps[0] == ("nothing was left of worker gpu-1", "job 7: CANCELLED")
    assert ("pool gpu gave back worker gpu-1", "it had no work for 5 s") in steps
    assert steps[-1] == ("pool gpu asked for worker gpu-1", "1 request waits")
    assert len(steps) == 6


def test_a_pools_story_is_that_of_its_workers_and_of_its_engine():
    steps = steps_about("pool", "gpu")
    assert steps[0][0] == "the engine of pool gpu did not answer: squeue: no answer"
    assert steps[-1][0] == "pool gpu asked for worker gpu-1"
    assert not any("cpu" in what for what, _ in steps)
