"""Reports what runs use, by REST with each run's own token: a worker may not speak for trials."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
import urllib3

from worker import process
from worker.launchers.containers import ID_FILE
from worker.run import Run
from worker.settings import WorkerSettings
from worker.utilisation.gpus import Gpus, load_nvml
from worker.utilisation.sampling import Sampler, processes_of

PATH = "/api/v1/trials/profiler/metrics"
KIND = "PROFILER_METRIC_TYPE_PROCESS"
TIMEOUT_S = 10.0
Post = Callable[[dict[str, Any], str], None]

log = structlog.get_logger()


async def watch(settings: WorkerSettings, worker_id: str, runs: Mapping[str, Run]) -> None:
    """Sample the runs of trials every `worker_sample_s` seconds until cancelled. 0: never."""
    if not settings.worker_sample_s:
        return
    watcher = Watcher(worker_id, Gpus(await asyncio.to_thread(load_nvml)), poster(settings))
    while True:
        await asyncio.sleep(settings.worker_sample_s)
        await watcher.sample_all(runs)


class Watcher:
    """Keeps each run's sampler while it runs."""

    def __init__(self, worker_id: str, gpus: Gpus, post: Post) -> None:
        self._worker = worker_id
        self._gpus = gpus
        self._post = post
        self._samplers: dict[str, Sampler] = {}
        self._was_last_report_sent = True

    async def sample_all(self, runs: Mapping[str, Run]) -> None:
        """Sample each run of a trial once, and report the result."""
        self._samplers = {id: sampler for id, sampler in self._samplers.items() if id in runs}
        for run in list(runs.values()):
            briefing = run.order.briefing
            if briefing is None or briefing.trial is None or not briefing.token or run.done.is_set():
                continue
            metrics = await asyncio.to_thread(self._sample, run)
            if metrics:
                body = batches(
                    metrics, briefing.trial.trial_id, self._worker, run.order.started_at, time.time()
                )
                await self._report(body, briefing.token)

    def _sample(self, run: Run) -> dict[str, float]:
        try:
            text = (run.folder / "running.json").read_bytes()
            running = msgspec.json.decode(text, type=process.Running)
        except (OSError, msgspec.MsgspecError):
            return {}
        if not running.command.is_alive():
            return {}
        sampler = self._samplers.get(run.id)
        if sampler is None:
            uuids = [slot.uuid for slot in run.devices if slot.kind == "cuda"]
            sampler = self._samplers[run.id] = Sampler(self._worker, self._gpus, uuids)
        pids = processes_of(running.shim.pid, running.command.pid, run.folder / ID_FILE)
        return sampler.sample(pids - {running.shim.pid})

    async def _report(self, body: dict[str, Any], token: str) -> None:
        try:
            await asyncio.to_thread(self._post, body, token)
        except OSError as error:
            # The gateway may be away for long; log that only once.
            if self._was_last_report_sent:
                log.info("utilisation.not_reported", error=str(error))
            self._was_last_report_sent = False
        else:
            self._was_last_report_sent = True


def batches(
    metrics: Mapping[str, float], trial_id: int, worker_id: str, started_at: float, now: float
) -> dict[str, Any]:
    """The request that reports figures. Their steps are seconds since the run began."""
    labels = {"trialId": trial_id, "agentId": worker_id, "metricType": KIND}
    step = max(0, int(now - started_at))
    at = datetime.fromtimestamp(now, UTC).isoformat()
    return {
        "batches": [
            {"values": [value], "batches": [step], "timestamps": [at], "labels": labels | {"name": name}}
            for name, value in sorted(metrics.items())
        ]
    }


def poster(settings: WorkerSettings) -> Post:
    """Return a function that posts a request to the gateway.

    It raises `OSError` if the gateway rejects it.
    """
    trust: dict[str, Any] = {}
    authority = settings.master_cert_file or settings.tls_ca
    if settings.master_url.startswith("https://"):
        if authority is not None:
            # A path, which is read again for each connection, because the file may be replaced.
            trust["ca_certs"] = str(authority)
        if settings.master_cert_name:
            trust["assert_hostname"] = settings.master_cert_name
    pool = urllib3.PoolManager(timeout=TIMEOUT_S, retries=False, **trust)

    def post(body: dict[str, Any], token: str) -> None:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        address = settings.master_url.rstrip("/") + PATH
        try:
            answer = pool.request("POST", address, body=json.dumps(body).encode(), headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise OSError(str(error)) from error
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise OSError(f"{answer.status}: {answer.data[:200].decode(errors='replace')}")

    return post
