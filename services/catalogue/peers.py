"""The gateway's queries and commands to the other services."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterable
from typing import Any, Protocol

import msgspec

from det_contracts import queries, subjects
from det_contracts.commands import Answer
from det_contracts.events.scheduler import PoolSettings
from det_contracts.problems import Refused
from services.catalogue.catalogue import Catalogue
from services.catalogue.trained_batches import trained_batches
from services.kit.log_progress import ProcessProgress

JOBS_AT_ONCE = 5000
"""Jobs in one answer of the scheduler: one message, which the broker limits to 8 MiB."""
OPTIONAL_ANSWER_TIMEOUT_S = 0.5
"""Timeout for answers that a page can do without, in seconds."""


class OwnerClient(Protocol):
    """Reaches the owners: `services.kit.bus.BusClient`, or a test double."""

    async def command(self, command: Any) -> Answer:
        """Send a command to its owner. Raises `Refused`."""

    async def query(self, query: Any, *, min_position: int = 0, stream: str = subjects.CONTROL) -> Answer:
        """Send a query to its owner. Raises `Refused`."""

    async def publish(self, subject: str, body: bytes) -> None:
        """Publish a message that is not stored. Raises `Refused`."""

    async def log_progress(self, owners: Collection[str]) -> dict[str, list[ProcessProgress]]:
        """Ask all processes of services how far they have read the log. Raises `Refused`."""


class ReportedValidation(msgspec.Struct, frozen=True):
    """A validation, as sent by the metrics service."""

    steps_completed: int
    at: float
    metrics: dict[str, Any]
    run: int


class Summary(msgspec.Struct, frozen=True):
    """A summary of a trial's reports."""

    total_batches: int = 0
    best_validation: ReportedValidation | None = None
    latest_validation: ReportedValidation | None = None
    summary: dict[str, Any] = {}
    """Group -> metric name -> statistics."""


class Report(msgspec.Struct, frozen=True):
    """One reported row of metrics."""

    id: int
    trial_id: int
    run: int
    group: str
    steps_completed: int
    at: float
    metrics: dict[str, Any]
    batch_metrics: Any = None
    archived: bool = False


class LogLine(msgspec.Struct, frozen=True):
    """One line of a log."""

    id: int
    task_id: str
    allocation_id: str
    worker_id: str
    at: float
    level: str | None
    rank: int | None
    source: str
    stdtype: str
    text: str
    number: int = 0
    """The line's number in the task's log, from 1; 0 if not known yet."""


class LogPage(msgspec.Struct, frozen=True):
    """Log lines, and the position in LOGS up to which they are complete."""

    lines: list[LogLine]
    through: int
    more: bool = False
    """Whether there may be more lines: the page is full, or the search took too long."""
    cursor: int = 0
    """The id from which to continue, if there may be more lines."""
    number: int = 0
    """The number of the line at the cursor."""


class Job(msgspec.Struct, frozen=True):
    """A job in the queue, as sent by the scheduler."""

    experiment_id: int
    pool: str
    state: str
    priority: int
    weight: float
    max_slots: int | None
    submitted_at: float
    slots_requested: int
    slots_allocated: int
    jobs_ahead: int
    """-1 if the scheduler does not order jobs."""
    waits_for: str
    """Why the job waits, as a sentence; empty if nothing of it is waiting."""


class PoolRow(msgspec.Struct, frozen=True):
    """A resource pool, as sent by the scheduler."""

    name: str
    description: str
    settings: PoolSettings
    workers: int
    slots: int
    slots_used: int
    aux_used: int
    jobs: int
    queued: int = 0
    scheduled: int = 0
    growth: str = ""
    """The state of an autoscaling pool, as a sentence."""


class QueueOrder(msgspec.Struct, frozen=True):
    """What determines the order in which work is placed."""

    schedulers: dict[str, str]
    """Schedulers by pool name."""
    priorities: dict[int, int]
    """Priorities by the owner of the job, only in pools that schedule by priority."""


class Peers:
    """The other services."""

    def __init__(self, bus_client: OwnerClient, catalogue: Catalogue) -> None:
        self._bus_client = bus_client
        self._catalogue = catalogue
        self.publish = bus_client.publish
        """Publishes a message that is not stored, given subject and body. Raises `Refused` (unavailable)."""
        self.log_progress = bus_client.log_progress
        """Returns how far each process of some services has read the log, given their names."""

    async def command(self, command: Any) -> Any:
        """Send a command; return the answer's value once the catalogue has folded the outcome."""
        answer = await self._bus_client.command(command)
        # The client will look at once for what it changed, and this gateway answers from its own fold.
        await self._catalogue.wait_for_position(answer.position)
        return answer.value

    async def progress(self, experiment_ids: Iterable[int]) -> dict[int, float]:
        """Progress, 0 to 1, of open experiments; empty while the searcher is unavailable."""
        ids = list(experiment_ids)
        query = queries.SearchProgress(ids, trained_batches(self._catalogue.state, ids))
        shares = await self._query_or_empty(query) if ids else {}
        return {int(id): share for id, share in shares.items()}

    async def waiting(self, experiment_id: int | None = None) -> dict[str, str]:
        """Why allocations wait, by id; empty while the scheduler is unavailable."""
        return await self._query_or_empty(queries.Waiting(experiment_id))

    async def jobs(self, pool: str | None = None) -> list[Job]:
        """The queue of one pool or of all. Raises `Refused`, also for an unknown pool.

        A long queue is read in parts. A job that moves between two of them may be missing until the next
        look.
        """
        jobs: dict[int, Job] = {}
        while True:
            page = await self._jobs(queries.Jobs(pool, offset=len(jobs), limit=JOBS_AT_ONCE))
            count_before = len(jobs)
            jobs |= {job.experiment_id: job for job in page}
            # A scheduler of an earlier release sends the whole queue each time, which then adds nothing.
            if len(page) != JOBS_AT_ONCE or len(jobs) == count_before:
                return list(jobs.values())

    async def _jobs(self, query: queries.Jobs) -> list[Job]:
        # The owner must have read what this page already shows; otherwise an experiment would be listed as
        # active and its job be missing.
        answer = await self._bus_client.query(query, min_position=self._catalogue.position)
        return msgspec.convert(answer.value, list[Job])

    async def job(self, experiment_id: int) -> Job | None:
        """An experiment's job, if it wants or has slots; None while the scheduler is unavailable."""
        jobs: list[Job] = []
        async with _optional():
            jobs = await self._jobs(queries.Jobs(experiment_id=experiment_id))
        return next((job for job in jobs if job.experiment_id == experiment_id), None)

    async def pools(self) -> list[PoolRow]:
        """All resource pools. Raises `Refused` while the scheduler is unavailable."""
        answer = await self._bus_client.query(queries.Pools(), min_position=self._catalogue.position)
        return msgspec.convert(answer.value, list[PoolRow])

    async def queue_order(self) -> QueueOrder:
        """How the pools order their work, without what the scheduler does not answer in time."""
        schedulers: dict[str, str] = {}
        jobs: list[Job] = []
        async with _optional():
            schedulers = {row.name: row.settings.scheduler for row in await self.pools()}
            # Only after the schedulers are kept: if the time is up during this query, the page still shows
            # how each pool orders.
            jobs = await self.jobs() if "priority" in schedulers.values() else []
        return QueueOrder(schedulers, {job.experiment_id: job.priority for job in jobs})

    async def misfit_reason(self, pool: str, slots: int, *, single_agent: bool = False) -> str:
        """Empty if the pool could ever place a trial of that size, else what would fit. Raises `Refused`."""
        query = queries.Fits(pool=pool, slots=slots, single_agent=single_agent)
        answer = await self._bus_client.query(query, min_position=self._catalogue.position)
        return str(answer.value)

    async def query(self, query: Any, *, stream: str = subjects.CONTROL, position: int = 0) -> Any:
        """The answer of an owner that has read `stream` up to `position`. Raises `Refused`."""
        return (await self._bus_client.query(query, min_position=position, stream=stream)).value

    async def _query_or_empty(self, query: Any) -> dict[str, Any]:
        return await query_or_empty(self, query, self._catalogue.position)

    async def summaries(self, trial_ids: Iterable[int]) -> dict[int, Summary]:
        """Summaries of trials' reports. Raises `Refused` while the metrics service is unavailable."""
        ids = list(trial_ids)
        if not ids:
            return {}
        answer = await self._bus_client.query(queries.TrialSummaries(ids))
        return {int(id): msgspec.convert(summary, Summary) for id, summary in answer.value.items()}

    async def reports(
        self, trial_ids: list[int], group: str | None, *, archived: bool = True
    ) -> AsyncIterator[list[Report]]:
        """All rows of trials, page by page, by trial, run and steps. Profiles are included only by group."""
        after: tuple[int, int, int, int] | None = None
        while trial_ids:
            query = queries.Reports(
                trial_ids=trial_ids, group=group, profiled=False, archived=archived, after=after, limit=0
            )
            answer = await self._bus_client.query(query)
            rows = msgspec.convert(answer.value["rows"], list[Report])
            # A page can be empty although more is said to follow, if its rows were deleted meanwhile; asking
            # again from the same place would never end.
            if not rows:
                return
            yield rows
            last = rows[-1]
            after = (last.trial_id, last.run, last.steps_completed, last.id)
            if not answer.value["more"]:
                return

    async def log_page(self, query: queries.LogPage, *, limit: int) -> LogPage:
        """One page of a task's log."""
        answer = await self._bus_client.query(msgspec.structs.replace(query, limit=limit))
        return msgspec.convert(answer.value, LogPage)


@contextlib.asynccontextmanager
async def _optional() -> AsyncIterator[None]:
    """For answers that a page can do without: what is asked within is given up while its owner is away."""
    with contextlib.suppress(Refused, TimeoutError):
        async with asyncio.timeout(OPTIONAL_ANSWER_TIMEOUT_S):
            yield


async def query_or_empty(peers: Peers, query: Any, position: int) -> dict[str, Any]:
    """An answer that a page can do without: empty while the owner is unavailable."""
    answer: dict[str, Any] = {}
    async with _optional():
        answer = await peers.query(query, position=position)
    return answer


async def pools_or_empty(peers: Peers) -> list[PoolRow]:
    """All resource pools; none while the scheduler is unavailable."""
    pools: list[PoolRow] = []
    async with _optional():
        pools = await peers.pools()
    return pools
