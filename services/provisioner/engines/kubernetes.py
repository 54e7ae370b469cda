"""Workers as Kubernetes pods, through the Kubernetes API. Imports its client, which only such pools need.

A pod's name is derived from the worker's id, so a worker that is requested twice exists once. Labels
distinguish the pods of this pool and cluster from all others. Nothing is kept between requests, not even a
connection, so a renewed token or kubeconfig takes effect at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import httpx2
import msgspec
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.core.exceptions import ConfigError
from lightkube.resources.core_v1 import Pod

from services.kit.settings import BadSettings
from services.provisioner.engines.kubernetes_pod import pod, pod_name, selector
from services.provisioner.engines.kubernetes_settings import KubernetesSettings, checked
from services.provisioner.engines.kubernetes_status import worker_of_pod
from services.provisioner.engines.protocol import EngineRefused, EngineUnavailable, ListedWorker

PAGE = 500
"""Number of pods per page of a list."""
WATCH_S = 240
"""Duration of one watch before it is renewed, in seconds."""
MAX_WAIT_S = 120.0
"""Maximum wait that is accepted from the API server's `Retry-After`, in seconds."""
NOT_FOUND, GONE = 404, 410
RETRYABLE_STATUSES = {401, 408, 409, 410, 429}
"""Status codes, besides 500 and above, that say nothing about what was requested."""
CONNECTION_ERRORS = (ConfigError, httpx2.HTTPError, msgspec.MsgspecError, OSError, LookupError, ValueError)
"""The API server is unreachable, or something in between, such as a proxy, answered in another format."""


class KubernetesEngine:
    """Runs workers as pods. See the module docstring."""

    def __init__(self, pool: str, slots: int, cluster_id: str, settings: KubernetesSettings) -> None:
        """Raises `BadSettings`."""
        self._pool = pool
        self._slots = slots
        self._cluster_id = cluster_id
        self._settings = checked(settings)
        self._not_before = 0.0
        """The API server has asked for no requests before this time of the monotonic clock."""
        self._version = ""
        """Resource version of the newest list, from which changes are watched."""
        # At the start, since the client drops unknown fields silently: a misspelt limit would just not be
        # there.
        self._reject_unknown_fields()

    def pod(self, worker_id: str) -> dict[str, Any]:
        """The pod manifest for a worker."""
        return pod(
            self._settings,
            cluster_id=self._cluster_id,
            worker_id=worker_id,
            pool=self._pool,
            slots=self._slots,
        )

    def _reject_unknown_fields(self) -> None:
        pod = self.pod(f"{self._pool}-1")
        try:
            unknown = [*_unknown_fields(pod, msgspec.convert(pod, Pod).to_dict(), "pod")]
        except msgspec.ValidationError as error:
            raise BadSettings(f"kubernetes: the settings do not give a valid pod: {error}") from None
        if unknown:
            raise BadSettings(f"kubernetes: these are not fields of a pod: {', '.join(unknown)}")

    async def list_workers(self) -> Sequence[ListedWorker]:
        """The pods of this pool. Raises `EngineUnavailable`."""
        async with self._api() as api:
            try:
                return await self._list(api)
            except ApiError as error:
                if error.status.code != GONE:
                    raise
            # The list expired between two of its pages.
            return await self._list(api)

    async def _list(self, api: AsyncClient) -> Sequence[ListedWorker]:
        listed = api.list(Pod, labels=selector(self._cluster_id, self._pool), chunk_size=PAGE)
        workers = [worker_of_pod(listed_pod) async for listed_pod in listed]
        self._version = listed.resourceVersion or ""
        return [worker for worker in workers if worker is not None]

    async def wait_for_change(self) -> None:
        """Return when a pod of this pool may have changed since the last look. Raises `EngineUnavailable`."""
        labels = selector(self._cluster_id, self._pool)
        since: dict[str, Any] = {"resource_version": self._version} if self._version else {}
        async with self._api(within_s=WATCH_S + self._settings.request_timeout_s) as api:
            async for _ in api.watch(Pod, labels=labels, server_timeout=WATCH_S, **since):
                return

    async def start(self, worker_id: str) -> str:
        """Create a pod. Raises `EngineRefused` with the API server's message, or `EngineUnavailable`."""
        wanted = msgspec.convert(self.pod(worker_id), Pod)
        async with self._api(refusal=EngineRefused) as api:
            try:
                await api.create(wanted)
            except ApiError as error:
                # The answer to an earlier request was lost, or another provisioner was faster.
                if error.status.reason != "AlreadyExists":
                    raise
        return f"pod {pod_name(self._cluster_id, worker_id)}"

    async def stop(self, listed_worker: ListedWorker) -> None:
        """Delete a pod. Kubernetes waits for its scripts, then sends the worker SIGTERM."""
        async with self._api() as api:
            try:
                await api.delete(Pod, listed_worker.handle)
            except ApiError as error:
                if error.status.code != NOT_FOUND:
                    raise

    async def forget(self, listed_worker: ListedWorker) -> None:
        """Delete a pod that has ended or can never start."""
        await self.stop(listed_worker)

    @contextlib.asynccontextmanager
    async def _api(
        self, *, within_s: float = 0.0, refusal: type[Exception] = EngineUnavailable
    ) -> AsyncIterator[AsyncClient]:
        """A client whose errors are raised as `EngineUnavailable`; rejections by the API server as
        `refusal`."""
        if time.monotonic() < self._not_before:
            raise EngineUnavailable("the API server of Kubernetes is limiting our requests")
        within_s = within_s or self._settings.request_timeout_s
        try:
            api = self._client()
            try:
                async with asyncio.timeout(within_s):
                    yield api
            finally:
                await api.close()
        except ApiError as error:
            self._honor_retry_after(error)
            away = error.status.code in RETRYABLE_STATUSES or (error.status.code or 500) >= 500
            raise (EngineUnavailable if away else refusal)(f"the API server of Kubernetes: {error}") from None
        except TimeoutError:
            raise EngineUnavailable(
                f"the API server of Kubernetes did not answer within {within_s:g} s"
            ) from None
        except CONNECTION_ERRORS as error:
            raise EngineUnavailable(
                f"the API server of Kubernetes: {str(error) or type(error).__name__}"
            ) from None

    def _client(self) -> AsyncClient:
        chosen = self._settings
        # Read for each request: a service account's token is replaced in its file about every hour.
        kubeconfig = KubeConfig.from_file(chosen.kubeconfig) if chosen.kubeconfig else KubeConfig.from_env()
        config = kubeconfig.get(chosen.context or None)
        timeout = httpx2.Timeout(chosen.request_timeout_s)
        return AsyncClient(config, namespace=chosen.namespace or None, timeout=timeout)

    def _honor_retry_after(self, error: ApiError) -> None:
        """Wait as long as the API server requests."""
        wait_s = error.response.headers.get("Retry-After", "") if error.response is not None else ""
        if wait_s.isdecimal():
            self._not_before = time.monotonic() + min(float(wait_s), MAX_WAIT_S)


def _unknown_fields(written: Any, recognized: Any, at: str) -> Iterator[str]:
    """Paths of settings that are not fields of Kubernetes."""
    if isinstance(written, Mapping) and isinstance(recognized, Mapping):
        for name, value in written.items():
            if name in recognized:
                yield from _unknown_fields(value, recognized[name], f"{at}.{name}")
            elif value:
                yield f"{at}.{name}"
    if isinstance(written, list) and isinstance(recognized, list):
        for number, (item, recognized_item) in enumerate(zip(written, recognized, strict=False)):
            yield from _unknown_fields(item, recognized_item, f"{at}[{number}]")
