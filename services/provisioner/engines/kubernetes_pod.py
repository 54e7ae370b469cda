"""The pod manifest of a worker. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from services.kit.merge_patch import merged
from services.provisioner.engines.kubernetes_settings import GRACE_LEFT_S, KubernetesSettings

CLUSTER, POOL, WORKER = "steadfast/cluster", "steadfast/pool", "steadfast/worker"
"""Labels. The last one is also an annotation, which holds the unmodified id."""
HOME, TASKS, KEYS = "/var/lib/steadfast/worker", "/var/lib/steadfast-tasks", "/keys/worker"
SHM = "/dev/shm"  # noqa: S108 - of the container, a volume of its own
USER = 10001
"""The user `steadfast` in the platform's image."""
FOR_OTHER_USERS = ["SETUID", "SETGID", "CHOWN", "FOWNER", "DAC_OVERRIDE", "KILL"]
"""To change users, hand over and remove files, and end processes of other users."""
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def label(text: str) -> str:
    """A text as a label value: unchanged if that is valid, else a shortened form with a unique suffix."""
    return text if _LABEL.fullmatch(text) else f"{_sanitize(text, 40)}-{_short_hash(text)}".lstrip("-_.")


def selector(cluster_id: str, pool: str) -> dict[str, Any]:
    """The labels of all pods of a pool."""
    return {CLUSTER: label(cluster_id), POOL: label(pool)}


def pod_name(cluster_id: str, worker_id: str) -> str:
    """The name of a worker's pod. Always the same, so that a worker cannot be created twice."""
    plain = _sanitize(worker_id.lower().replace("_", "-").replace(".", "-"), 40).strip("-")
    return f"steadfast-{plain}-{_short_hash(f'{cluster_id}/{worker_id}')}"


def _sanitize(text: str, longest: int) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", text)[:longest]


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def pod(
    settings: KubernetesSettings, *, cluster_id: str, worker_id: str, pool: str, slots: int
) -> dict[str, Any]:
    """The pod of one worker."""
    identity_labels = selector(cluster_id, pool) | {WORKER: label(worker_id)}
    metadata: dict[str, Any] = {
        "name": pod_name(cluster_id, worker_id),
        "labels": {**settings.labels, "app.kubernetes.io/managed-by": "steadfast", **identity_labels},
        "annotations": {**settings.annotations, WORKER: worker_id},
    }
    if settings.namespace:
        metadata["namespace"] = settings.namespace
    variables = {
        "STEADFAST_WORKER_ID": worker_id,
        "STEADFAST_WORKER_POOL": pool,
        "STEADFAST_WORKER_SLOTS": str(slots),
        "STEADFAST_CLUSTER_ID": cluster_id,
        **_common_variables(settings),
    }
    spec = merged(_spec(settings, variables), settings.pod)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _common_variables(settings: KubernetesSettings) -> dict[str, str]:
    variables = {
        "STEADFAST_WORKER_GPU": str(settings.gpus > 0).lower(),
        "STEADFAST_WORKER_HOME": HOME,
        "STEADFAST_WORKER_TASKS": TASKS,
    }
    if settings.run_tasks_as:
        variables["STEADFAST_WORKER_RUN_AS"] = settings.run_tasks_as
    if settings.keys_secret:
        variables |= {
            "STEADFAST_WORKER_SIGNING": f"{KEYS}/worker-signing.json",
            "STEADFAST_TRIAL_SIGNING": f"{KEYS}/trial-signing.json",
            "STEADFAST_SEALING_KEY": f"{KEYS}/sealing-key",
        }
    return variables | settings.environment


def _spec(settings: KubernetesSettings, variables: Mapping[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [_container(settings, variables)],
        # A worker that has ended is not restarted: the pool requests another one, with a new id.
        "restartPolicy": "Never",
        # Scripts run in this pod, and must not speak to the API server.
        "automountServiceAccountToken": False,
        # Otherwise each service of the namespace adds variables, some of which would look like settings of
        # ours.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": settings.grace_s,
        "securityContext": _pod_security(settings),
        "volumes": _volumes(settings),
        "serviceAccountName": settings.service_account,
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
        "nodeSelector": settings.node_selector,
        "tolerations": list(settings.tolerations),
        "priorityClassName": settings.priority_class,
        "runtimeClassName": settings.runtime_class,
        "activeDeadlineSeconds": settings.time_limit_s,
    }
    return _strip_empty(spec)


def _strip_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is False or value}


def _container(settings: KubernetesSettings, variables: Mapping[str, str]) -> dict[str, Any]:
    limits = dict(settings.limits)
    if settings.gpus:
        limits[settings.gpu_resource] = str(settings.gpus)
    environment = [{"name": name, "value": value} for name, value in sorted(variables.items())]
    address = {"name": "STEADFAST_WORKER_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    wait = [*settings.command[:2], "-m", "worker.until_idle", HOME, str(settings.grace_s - GRACE_LEFT_S)]
    container: dict[str, Any] = {
        "name": "worker",
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": list(settings.command),
        "env": [*environment, *([] if "STEADFAST_WORKER_ADDRESS" in variables else [address])],
        "envFrom": [{"secretRef": {"name": name}} for name in settings.environment_from],
        "resources": _strip_empty({"limits": limits, "requests": settings.requests}),
        "securityContext": _container_security(settings),
        "volumeMounts": _mounts(settings),
        # Kubernetes sends SIGTERM, which ends scripts, only after this. Scripts are asked to save in the
        # meantime.
        "lifecycle": {"preStop": {"exec": {"command": wait}}},
        # The end of its log becomes part of the pod's status, and so of what the pool reports.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return _strip_empty(container)


def _pod_security(settings: KubernetesSettings) -> dict[str, Any]:
    usual: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if settings.run_tasks_as:
        return {"runAsUser": 0, "runAsGroup": 0, **usual}
    return {"runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER, **usual}


def _container_security(settings: KubernetesSettings) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"drop": ["ALL"]}
    if settings.run_tasks_as:
        capabilities["add"] = FOR_OTHER_USERS
    return {"allowPrivilegeEscalation": False, "capabilities": capabilities}


def _volumes(settings: KubernetesSettings) -> list[dict[str, Any]]:
    home = {"sizeLimit": settings.home_size} if settings.home_size else {}
    volumes: list[dict[str, Any]] = [{"name": name, "emptyDir": home} for name in ("home", "tasks")]
    if settings.shm_size:
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": settings.shm_size}})
    if settings.keys_secret:
        # 0400, or readable by the group for a worker that is not root.
        mode = 0o400 if settings.run_tasks_as else 0o440
        volumes.append({"name": "keys", "secret": {"secretName": settings.keys_secret, "defaultMode": mode}})
    return [*volumes, *settings.volumes]


def _mounts(settings: KubernetesSettings) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "home", "mountPath": HOME},
        {"name": "tasks", "mountPath": TASKS},
    ]
    if settings.shm_size:
        mounts.append({"name": "shm", "mountPath": SHM})
    if settings.keys_secret:
        mounts.append({"name": "keys", "mountPath": KEYS, "readOnly": True})
    return [*mounts, *settings.mounts]
