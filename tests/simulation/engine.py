"""An engine that runs workers for a pool, and lies.

It lists jobs late, forgets them, starts them twice, starts them without a worker ever coming up, removes
hosts silently, reports live jobs as ended, and does not answer.
"""

import asyncio
from dataclasses import dataclass, field

from services.provisioner.engines.protocol import EngineRefused, EngineUnavailable, ListedWorker
from tests.simulation.worker import Worker

SLOTS = 2
POOL = "second"
LIE_PROBABILITY = 0.2
"""Probability of a lie wherever one is possible."""


@dataclass
class Job:
    """One worker that the engine was asked for, in its real state."""

    handle: str
    worker_id: str
    shown_at: float
    """Not listed before this time."""
    phase: str = "queued"
    reported_phase: str = ""
    """The phase that is reported instead of the real one."""
    ends_at: float = 0.0
    worker: Worker | None = None
    tasks: list = field(default_factory=list)

    @property
    def alive(self):
        return self.phase != "over"


class LyingEngine:
    """See the module. `honest` is set once nothing breaks any more."""

    def __init__(self, world):
        self._world = world
        self.chance = world.plan.chance("engine")
        self.honest = False
        self.jobs = []

    def _should_lie(self):
        return not self.honest and self.chance.random() < LIE_PROBABILITY

    def _record_lie(self, what, about):
        self._world.ledger.count(f"lies: {what}")
        self._world.fault("engine", f"{what}: {about}")
        return True

    async def _answer(self):
        await asyncio.sleep(self.chance.random() * (0.2 if self.honest else 4.0))
        if self._should_lie() and self._record_lie("away", "it does not answer"):
            raise EngineUnavailable("no answer")

    # -- the protocol

    async def list_workers(self):
        await self._answer()
        now = asyncio.get_running_loop().time()
        shown = [
            job
            for job in self.jobs
            if self.honest or (job.shown_at <= now and job.reported_phase != "nothing")
        ]
        return [self._as_reported(job) for job in shown]

    def _as_reported(self, job):
        phase = job.phase if self.honest or job.reported_phase in ("", "nothing") else job.reported_phase
        return ListedWorker(
            worker_id=job.worker_id, handle=job.handle, phase=phase, detail=job.handle, ends_at=job.ends_at
        )

    async def start(self, worker_id):
        await self._answer()
        if self._should_lie() and self._record_lie("refuses", worker_id):
            raise EngineRefused("no such partition")
        for _ in range(2 if self._should_lie() and self._record_lie("starts twice", worker_id) else 1):
            self._start_job(worker_id)
        await self._answer()
        return self.jobs[-1].handle

    async def stop(self, listed_worker):
        await self._answer()
        # Another provisioner may have forgotten the job in the meantime.
        job = next((job for job in self.jobs if job.handle == listed_worker.handle), None)
        if (
            job is not None
            and job.alive
            and not (self._should_lie() and self._record_lie("does not stop", job.worker_id))
        ):
            self._spawn(job, self._end(job))

    async def forget(self, listed_worker):
        await self._answer()
        self.jobs = [job for job in self.jobs if job.handle != listed_worker.handle or job.alive]

    # -- what really happens

    def _start_job(self, worker_id):
        late = self._should_lie() and self._record_lie("lists late", worker_id)
        shown_at = asyncio.get_running_loop().time() + (
            self.chance.choice((5.0, 25.0, 50.0)) if late else 0.0
        )
        job = Job(f"job-{self._world.new_id()}", worker_id, shown_at)
        self.jobs.append(job)
        self._spawn(job, self._run_job(job))

    def _spawn(self, job, work):
        task = asyncio.get_running_loop().create_task(work)
        job.tasks.append(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task):
        if not task.cancelled() and task.exception() is not None:
            self._world.fail(task.exception())

    async def _run_job(self, job):
        chance = self.chance
        await asyncio.sleep(chance.choice((0.1, 2.0, 20.0)))
        if not job.alive:
            return
        job.phase = "running"
        if self._should_lie() and self._record_lie("never comes up", job.worker_id):
            return
        self._bring_up(job)
        life = chance.expovariate(1 / 150)
        if not self.honest and chance.random() < 0.3:
            job.ends_at = self._world.clock() + life
        await asyncio.sleep(life)
        if job.ends_at or self._should_lie():
            await self._preempt_host(job)
        elif self._should_lie():
            job.reported_phase = chance.choice(("over", "nothing", "queued"))
            self._record_lie(f"says {job.reported_phase}", job.worker_id)

    def _bring_up(self, job):
        world = self._world
        job.worker = Worker(world, job.worker_id, SLOTS, POOL)
        job.worker.address = "10.0.1.1"
        if job.worker_id in world.workers:
            # Another worker has the id, as after a second start.
            job.worker.start()
        else:
            world.join(job.worker)
        world.ledger.count("workers brought up")

    async def _preempt_host(self, job):
        """Remove its host, and perhaps requeue the job, as after a preemption."""
        if not job.alive or job.worker is None or job.worker.retired:
            return
        self._record_lie("takes away", job.worker_id)
        job.worker.reboot()
        job.ends_at = 0.0
        if self.chance.random() < 0.5:
            self._finish(job)
            return
        job.phase = "queued"
        await asyncio.sleep(self.chance.choice((1.0, 40.0)))
        if job.alive:
            job.phase = "running"
            job.worker.forget_all()
            job.worker.start()

    async def _end(self, job):
        worker = job.worker
        if worker is not None and worker.up and worker.settled:
            await worker.do(worker.leave())
        if worker is not None and worker.up:
            worker.reboot()
        self._finish(job)

    def _finish(self, job):
        job.phase = "over"
        if job.worker is not None:
            job.worker.retired = True
