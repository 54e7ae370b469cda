"""Derives the state of a worker from its pod's status. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from services.provisioner.engines.kubernetes_pod import WORKER
from services.provisioner.engines.protocol import EnginePhase, ListedWorker

if TYPE_CHECKING:
    from lightkube.models.core_v1 import ContainerStatus
    from lightkube.resources.core_v1 import Pod

NEVER_STARTS = {
    "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ImageInspectError",
    "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable", "RunContainerError",
}  # fmt: skip
"""Reasons for waiting that only a person can resolve. Kubernetes itself would retry forever."""
MAX_MESSAGE_LENGTH = 300
"""Maximum length of a message from Kubernetes or from a worker that has ended, in characters."""
_COUNTED = re.compile(r"^\d+ ")


def worker_of_pod(pod: Pod) -> ListedWorker | None:
    """The worker in a pod; None if the pod is not a worker's."""
    metadata, status = pod.metadata, pod.status
    worker_id = ((metadata and metadata.annotations) or {}).get(WORKER, "")
    if not worker_id or metadata is None or not metadata.name:
        return None
    pod_phase = (status and status.phase) or "Pending"
    hopeless = _first_text(_permanent_failures(pod)) if pod_phase == "Pending" else ""
    return ListedWorker(
        worker_id=worker_id,
        handle=metadata.name,
        phase="over" if hopeless else _phase(pod_phase),
        detail=_detail(pod, pod_phase, hopeless),
        ends_at=_ends_at(pod) if pod_phase == "Running" else 0.0,
    )


def _first_text(texts: Iterable[str]) -> str:
    return next((text for text in texts if text), "")


def _phase(pod_phase: str) -> EnginePhase:
    if pod_phase in ("Succeeded", "Failed"):
        return "over"
    # Unknown: its node does not answer and the pod may still run. Whether the worker does is known otherwise.
    return "queued" if pod_phase == "Pending" else "running"


def _detail(pod: Pod, pod_phase: str, hopeless: str) -> str:
    name = (pod.metadata and pod.metadata.name) or ""
    node = pod.spec.nodeName if pod.spec else None
    where = f"pod {name} on node {node}" if node else f"pod {name}"
    if pod_phase == "Running":
        return f"{where}, which it must leave: {_leave_reason(pod)}" if _is_leaving(pod) else where
    because = hopeless or _first_text(
        _end_reasons(pod) if pod_phase in ("Succeeded", "Failed") else _waiting_reasons(pod)
    )
    return f"{where}: {because or pod_phase}"


def _is_leaving(pod: Pod) -> bool:
    return bool(pod.metadata and pod.metadata.deletionTimestamp)


def _leave_reason(pod: Pod) -> str:
    return _first_text(_conditions(pod, "DisruptionTarget", "True")) or "it was deleted"


def _ends_at(pod: Pod) -> float:
    """When it will be removed, because it was deleted or has a time limit; 0: unknown."""
    deleted = pod.metadata.deletionTimestamp if pod.metadata else None
    ends = [deleted.timestamp()] if deleted else []
    limit = pod.spec.activeDeadlineSeconds if pod.spec else None
    began = pod.status.startTime if pod.status else None
    if limit and began:
        ends.append(began.timestamp() + limit)
    return min(ends, default=0.0)


def _statuses(pod: Pod) -> list[ContainerStatus]:
    status = pod.status
    return [*(status.initContainerStatuses or []), *(status.containerStatuses or [])] if status else []


def _permanent_failures(pod: Pod) -> Iterator[str]:
    for container_status in _statuses(pod):
        waiting = container_status.state.waiting if container_status.state else None
        if waiting and waiting.reason in NEVER_STARTS:
            yield _join_message(waiting.reason, waiting.message)


def _waiting_reasons(pod: Pod) -> Iterator[str]:
    yield from (_join_message(*_strip_counts(text)) for text in _conditions(pod, "PodScheduled", "False"))
    for container_status in _statuses(pod):
        if container_status.state and container_status.state.waiting:
            yield _join_message(container_status.state.waiting.reason, container_status.state.waiting.message)


def _end_reasons(pod: Pod) -> Iterator[str]:
    if pod.status:
        yield _join_message(pod.status.reason, pod.status.message)
    yield from _conditions(pod, "DisruptionTarget", "True")
    for container_status in _statuses(pod):
        ended = container_status.state.terminated if container_status.state else None
        if ended:
            last = ((ended.message or "").strip().splitlines() or [""])[-1]
            yield _join_message(f"{ended.reason or 'ended'}, exit status {ended.exitCode}", last)


def _conditions(pod: Pod, type: str, status: str) -> Iterator[str]:
    for condition in (pod.status and pod.status.conditions) or []:
        if condition.type == type and condition.status == status:
            yield _join_message(condition.reason, condition.message)


def _strip_counts(text: str) -> tuple[str, None]:
    """Why nodes are unsuitable, without counts: these change all the time, and each change is an event."""
    head, sep, rest = text.partition(" nodes are available: ")
    if not sep:
        return text, None
    reason = head.partition(":")[0]
    whys = sorted({_COUNTED.sub("", why.strip(" .")) for why in rest.partition(". ")[0].split(", ")})
    return f"{reason}: {', '.join(whys)}", None


def _join_message(reason: str | None, message: str | None) -> str:
    return ": ".join(part for part in (reason, message) if part)[:MAX_MESSAGE_LENGTH]
