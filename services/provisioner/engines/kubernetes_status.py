"""Derives the state of a worker from its pod's status. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from services.provisioner.engines.kubernetes_pod import WORKER
from services.provisioner.engines.protocol import EnginePhase, Seen

if TYPE_CHECKING:
    from lightkube.models.core_v1 import ContainerStatus
    from lightkube.resources.core_v1 import Pod

NEVER_STARTS = {
    "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ImageInspectError",
    "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable", "RunContainerError",
}  # fmt: skip
"""Reasons for waiting that only a person can resolve. Kubernetes itself would retry forever."""
LONGEST = 300
"""Maximum length of a message from Kubernetes or from a worker that has ended, in characters."""
_COUNTED = re.compile(r"^\d+ ")


def seen(pod: Pod) -> Seen | None:
    """The worker in a pod; None if the pod is not a worker's."""
    metadata, status = pod.metadata, pod.status
    worker_id = ((metadata and metadata.annotations) or {}).get(WORKER, "")
    if not worker_id or metadata is None or not metadata.name:
        return None
    said = (status and status.phase) or "Pending"
    hopeless = _first(_hopeless(pod)) if said == "Pending" else ""
    return Seen(
        worker_id=worker_id,
        handle=metadata.name,
        phase="over" if hopeless else _phase(said),
        detail=_detail(pod, said, hopeless),
        ends_at=_ends_at(pod) if said == "Running" else 0.0,
    )


def _first(texts: Iterable[str]) -> str:
    return next((text for text in texts if text), "")


def _phase(said: str) -> EnginePhase:
    if said in ("Succeeded", "Failed"):
        return "over"
    # Unknown: its node does not answer and the pod may still run. Whether the worker does is known otherwise.
    return "queued" if said == "Pending" else "running"


def _detail(pod: Pod, said: str, hopeless: str) -> str:
    name = (pod.metadata and pod.metadata.name) or ""
    node = pod.spec.nodeName if pod.spec else None
    where = f"pod {name} on node {node}" if node else f"pod {name}"
    if said == "Running":
        return f"{where}, which it must leave: {_leaves(pod)}" if _is_leaving(pod) else where
    because = hopeless or _first(_ended(pod) if said in ("Succeeded", "Failed") else _waits(pod))
    return f"{where}: {because or said}"


def _is_leaving(pod: Pod) -> bool:
    return bool(pod.metadata and pod.metadata.deletionTimestamp)


def _leaves(pod: Pod) -> str:
    return _first(_conditions(pod, "DisruptionTarget", "True")) or "it was deleted"


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


def _hopeless(pod: Pod) -> Iterator[str]:
    for one in _statuses(pod):
        waiting = one.state.waiting if one.state else None
        if waiting and waiting.reason in NEVER_STARTS:
            yield _said(waiting.reason, waiting.message)


def _waits(pod: Pod) -> Iterator[str]:
    yield from (_said(*_uncounted(text)) for text in _conditions(pod, "PodScheduled", "False"))
    for one in _statuses(pod):
        if one.state and one.state.waiting:
            yield _said(one.state.waiting.reason, one.state.waiting.message)


def _ended(pod: Pod) -> Iterator[str]:
    if pod.status:
        yield _said(pod.status.reason, pod.status.message)
    yield from _conditions(pod, "DisruptionTarget", "True")
    for one in _statuses(pod):
        ended = one.state.terminated if one.state else None
        if ended:
            last = ((ended.message or "").strip().splitlines() or [""])[-1]
            yield _said(f"{ended.reason or 'ended'}, exit status {ended.exitCode}", last)


def _conditions(pod: Pod, type: str, status: str) -> Iterator[str]:
    for one in (pod.status and pod.status.conditions) or []:
        if one.type == type and one.status == status:
            yield _said(one.reason, one.message)


def _uncounted(text: str) -> tuple[str, None]:
    """Why nodes are unsuitable, without counts: these change all the time, and each change is an event."""
    head, sep, rest = text.partition(" nodes are available: ")
    if not sep:
        return text, None
    reason = head.partition(":")[0]
    whys = sorted({_COUNTED.sub("", why.strip(" .")) for why in rest.partition(". ")[0].split(", ")})
    return f"{reason}: {', '.join(whys)}", None


def _said(reason: str | None, message: str | None) -> str:
    return ": ".join(part for part in (reason, message) if part)[:LONGEST]
