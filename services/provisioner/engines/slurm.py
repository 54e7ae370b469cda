"""Workers as Slurm jobs, through Slurm's own commands: `sbatch`, `squeue`, `scancel`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from services.kit.os_user import os_user
from services.kit.slurm_jobs import job_name, worker_of
from services.provisioner.engines.commands import CommandFailed, run_command
from services.provisioner.engines.process import PROVISIONER_ONLY
from services.provisioner.engines.protocol import EnginePhase, EngineRefused, EngineUnavailable, ListedWorker
from services.provisioner.engines.slurm_script import SlurmSettings, script

FIELDS = "%i|%T|%e|%r|%j"
"""Number, state, end, reason, and last the name, since names of other jobs may contain anything."""
QUEUED = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SUSPENDED", "SPECIAL_EXIT"}
OVER = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "REVOKED", "TIMEOUT",
}  # fmt: skip
FAILED_BY_ITSELF = ("NonZeroExitCode", "OutOfMemory")
"""Reasons of jobs whose output may say more."""
NEVER_STARTS = ("launch failed", "launch_failed")
"""Reasons of jobs that wait for a person because no node could start them."""
UNAVAILABLE_MESSAGES = (
    "contact slurm controller",
    "timed out",
    "connection refused",
    "communication connection",
    "munge",
)
"""Messages of Slurm's commands when the controller was unreachable or did not answer in time."""


class SlurmEngine:
    """Runs workers as jobs. The provisioner runs as the user that owns the jobs."""

    def __init__(self, pool: str, slots: int, cluster_id: str, settings: SlurmSettings) -> None:
        self._pool = pool
        self._slots = slots
        self._cluster_id = cluster_id
        self._settings = settings

    async def list_workers(self) -> Sequence[ListedWorker]:
        """The jobs of this pool that Slurm still lists. Raises `EngineUnavailable`."""
        states = ("squeue", "--noheader", "--states=all", f"--user={os_user()}", f"--format={FIELDS}")
        try:
            output = await self._run(*states, SLURM_TIME_FORMAT="%s")
        except CommandFailed as error:
            raise EngineUnavailable(f"squeue: {error}") from None
        workers = (self._parse_job(line) for line in output.splitlines())
        return [worker for worker in workers if worker is not None]

    def _parse_job(self, line: str) -> ListedWorker | None:
        number, state, end, reason, name = (line.split("|", 4) + [""] * 5)[:5]
        worker_id = worker_of(self._cluster_id, name)
        # One user may own the jobs of several pools and clusters, and jobs of other kinds.
        if worker_id.rpartition("-")[0] != self._pool:
            return None
        phase = _phase(state, reason)
        because = "" if reason in ("", "None") else f", {reason}"
        running = phase == "running"
        return ListedWorker(
            worker_id=worker_id,
            handle=number,
            phase=phase,
            detail=f"job {number}"
            if running
            else f"job {number}: {state}{because}{self._hint(number, reason)}",
            ends_at=float(end) if running and end.isdecimal() else 0.0,
        )

    def _hint(self, number: str, reason: str) -> str:
        """Where to read why a job failed: Slurm says no more than that it did."""
        if reason == "JobLaunchFailure":
            return "; its node's slurmd.log says why (the folder of slurm.output must exist there)"
        if reason in FAILED_BY_ITSELF:
            path = self._settings.output.replace("%j", number)
            return f"; what it printed: {path}" if path else "; set slurm.output to keep what it prints"
        return ""

    async def wait_for_change(self) -> None:
        """Never returns: nothing reports changes, so the regular checks have to find them."""
        await asyncio.Event().wait()

    async def start(self, worker_id: str) -> str:
        """Submit a job. Raises `EngineRefused` with Slurm's message, or `EngineUnavailable`."""
        try:
            output = await self._run("sbatch", "--parsable", text=self.script(worker_id))
        except CommandFailed as error:
            if any(mark in str(error).lower() for mark in UNAVAILABLE_MESSAGES):
                raise EngineUnavailable(f"sbatch: {error}") from None
            raise EngineRefused(f"sbatch: {error}") from None
        return f"job {output.strip().partition(';')[0]}"

    def script(self, worker_id: str) -> str:
        """The script that `sbatch` gets for a worker."""
        return script(
            self._settings,
            cluster_id=self._cluster_id,
            worker_id=worker_id,
            pool=self._pool,
            slots=self._slots,
            environment=_worker_settings(),
        )

    async def stop(self, listed_worker: ListedWorker) -> None:
        """Cancel a job: Slurm sends the worker SIGTERM, and kills it after Slurm's `KillWait`."""
        try:
            await self._run(
                "scancel",
                "--quiet",
                f"--name={job_name(self._cluster_id, listed_worker.worker_id)}",
                listed_worker.handle,
            )
        except CommandFailed as error:
            # If the job has ended in the meantime, --quiet suppresses the message but not the failure.
            if error.output:
                raise EngineUnavailable(f"scancel: {error}") from None

    async def forget(self, listed_worker: ListedWorker) -> None:
        """Slurm forgets ended jobs by itself. A job that can never start is cancelled."""
        if any(mark in listed_worker.detail for mark in NEVER_STARTS):
            await self.stop(listed_worker)

    async def _run(self, *command: str, text: str = "", **more: str) -> str:
        return await run_command(command, within_s=self._settings.command_timeout_s, text=text, **more)


def _phase(state: str, reason: str) -> EnginePhase:
    if state in OVER or any(mark in reason for mark in NEVER_STARTS):
        return "over"
    return "queued" if state in QUEUED else "running"


def _worker_settings() -> dict[str, str]:
    """The settings from the provisioner's environment, without its own."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("STEADFAST_")
        and not name.startswith("STEADFAST_PROVISIONER_")
        and name not in PROVISIONER_ONLY
    }
