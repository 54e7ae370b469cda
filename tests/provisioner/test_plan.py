"""What follows for an engine from what is wanted and what it lists."""

import asyncio

from services.provisioner.engines.protocol import EngineRefused, EngineUnavailable, ListedWorker
from services.provisioner.plan import DesiredPool, DesiredWorker, plan
from services.provisioner.reconciliation import reconcile_pool


def wanted(number=1, **more):
    return DesiredWorker(id=f"gpu-{number}", number=number, **{"phase": "wanted"} | more)


def target(*workers, newest=9, **more):
    return DesiredPool(pool="gpu", newest=newest, workers=workers, **more)


def listed(number=1, phase="running", handle="7", **more):
    return ListedWorker(worker_id=f"gpu-{number}", handle=handle, phase=phase, **more)


def test_what_is_wanted_and_not_listed_is_started():
    assert plan(target(wanted(1), wanted(2)), [listed(2)]).start == ("gpu-1",)


def test_what_was_started_once_is_not_started_again_while_lists_lag():
    todo = plan(target(wanted(phase="queued", detail="job 7")), [])
    assert todo.start == ()
    assert [(report.phase, report.detail) for report in todo.report] == [("missing", "job 7")]


def test_what_is_given_back_and_empty_is_stopped():
    worker = listed()
    assert plan(target(wanted(phase="running", released="idle")), [worker]).stop == (worker,)
    assert plan(target(wanted(phase="running", released="idle", busy=True)), [worker]).stop == ()


def test_what_is_given_back_before_it_was_started_is_over():
    todo = plan(target(wanted(released="nothing waits any more")), [])
    assert todo.start == ()
    assert [report.phase for report in todo.report] == ["over"]


def test_of_two_that_were_started_for_one_id_one_is_stopped():
    queued, running = listed(phase="queued", handle="3"), listed(handle="4")
    assert plan(target(wanted(phase="running")), [queued, running]).stop == (queued,)
    first, second = listed(phase="queued", handle="3"), listed(phase="queued", handle="4")
    assert plan(target(wanted(phase="queued")), [second, first]).stop == (second,)


def test_what_nobody_wants_is_stopped_but_not_what_an_old_answer_cannot_know():
    worker = listed(3)
    assert plan(target(newest=3), [worker]).stop == (worker,)
    assert plan(target(newest=2), [worker]).stop == ()


def test_what_is_called_otherwise_is_left_alone():
    stranger = ListedWorker(worker_id="other-cluster", handle="1", phase="running")
    assert plan(target(newest=0), [stranger]).stop == ()


def test_an_ended_instance_is_forgotten_once_it_was_reported():
    worker = listed(phase="over", detail="FAILED")
    desired = target(wanted(phase="running"))
    assert plan(desired, [worker]).forget == ()
    assert [(r.phase, r.detail) for r in plan(desired, [worker]).report] == [("over", "FAILED")]
    assert plan(target(), [worker]).forget == (worker,)


def test_unchanged_instances_are_not_reported():
    desired_worker = wanted(phase="running", detail="job 7", ends_at=3.0)
    assert plan(target(desired_worker), [listed(detail="job 7", ends_at=3.0)]).report == ()
    (news,) = plan(target(desired_worker), [listed(detail="job 7", ends_at=4.0)]).report
    assert news.ends_at == 4.0


class Engine:
    def __init__(self, **raises):
        self.raises = raises
        self.done = []

    def _do(self, what, *about):
        self.done.append((what, *about))
        if what in self.raises:
            raise self.raises[what]

    async def list_workers(self):
        self._do("look")
        return [listed(4, handle="4")]

    async def start(self, id):
        self._do("start", id)
        return "job 8"

    async def stop(self, worker):
        self._do("stop", worker.handle)

    async def forget(self, worker):
        self._do("forget", worker.handle)


def look(engine, answer):
    received = []

    async def ask():
        return answer

    async def tell(command):
        received.append(command)

    problem = asyncio.run(reconcile_pool("gpu", engine, ask, tell))
    return problem, received


def test_an_engine_that_does_not_answer_says_nothing_about_workers():
    problem, (seen_report,) = look(
        Engine(look=EngineUnavailable("squeue: no answer")), target(wanted(phase="running"))
    )
    assert problem == seen_report.problem == "squeue: no answer"
    assert seen_report.workers == ()


def test_what_is_refused_is_over_and_what_is_unknown_is_not_reported():
    _, (seen_report,) = look(Engine(start=EngineRefused("no such partition")), target(wanted()))
    assert [(report.worker_id, report.phase, report.detail) for report in seen_report.workers] == [
        ("gpu-1", "over", "no such partition")
    ]
    problem, (seen_report,) = look(Engine(start=EngineUnavailable("timeout")), target(wanted()))
    assert (problem, seen_report.problem, seen_report.workers) == ("timeout", "timeout", ())


def test_only_the_return_of_an_engine_is_reported():
    quiet = target(wanted(4, phase="running"))
    assert look(Engine(), quiet) == ("", [])
    _, (seen_report,) = look(Engine(), target(wanted(4, phase="running"), problem="away"))
    assert seen_report.problem == ""


def test_what_is_to_end_ends_before_anything_new_is_started():
    engine = Engine()
    look(engine, target(wanted(1), newest=5))
    assert engine.done == [("look",), ("stop", "4"), ("start", "gpu-1")]
