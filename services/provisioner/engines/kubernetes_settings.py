"""`provider.kubernetes` of a pool: settings for its workers' pods."""

from __future__ import annotations

from typing import Any

import msgspec

from services.kit.settings import BadSettings

GRACE_LEFT_S = 20
"""The part of a pod's termination grace period that the worker keeps to end what it runs, in seconds."""


class KubernetesSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Empty fields are left to the cluster's defaults."""

    image: str
    """Must contain steadfast and whatever scripts import."""
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    command: tuple[str, ...] = ("python", "-P", "-m", "worker")
    namespace: str = ""
    """Empty: that of the provisioner's own pod, or of the kubeconfig's context."""
    kubeconfig: str = ""
    """File. Empty: the service account of the provisioner's pod, else `KUBECONFIG`, else ~/.kube/config."""
    context: str = ""
    """Context of the kubeconfig; empty: its current one."""
    service_account: str = ""
    """Service account of the workers.

    Its token is never mounted, because scripts must not use the API server.
    """
    requests: dict[str, str] = {}
    """In Kubernetes syntax: `cpu: "8"`, `memory: 64Gi`. Resources only in `limits` are requested, too."""
    limits: dict[str, str] = {}
    gpus: int = 0
    """Number of GPUs per worker; 0: its slots are CPU slots."""
    gpu_resource: str = "nvidia.com/gpu"
    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = ()
    priority_class: str = ""
    runtime_class: str = ""
    labels: dict[str, str] = {}
    """In addition to the labels that identify pods, for example `kueue.x-k8s.io/queue-name`."""
    annotations: dict[str, str] = {}
    environment: dict[str, str] = {}
    """Settings of the workers. Pods inherit none of the provisioner's."""
    environment_from: tuple[str, ...] = ()
    """Secrets whose entries are settings of the workers, such as keys of an S3 store."""
    keys_secret: str = ""
    """Secret with `worker-signing.json`, `trial-signing.json` and `sealing-key`."""
    run_tasks_as: str = "10002:10002"
    """The user that scripts run as, so that they cannot read the worker's keys.

    The worker is then root in its container, with six capabilities that the Pod Security Standard `baseline`
    allows. Empty: the worker and its scripts share one user other than root, as `restricted` requires;
    scripts can then read the keys.
    """
    home_size: str = ""
    """Maximum size of the worker's folder on its node: `100Gi`."""
    shm_size: str = "1Gi"
    """Size of /dev/shm, which data loaders and NCCL use; it counts as memory. Empty: the runtime's 64 MiB."""
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    """Mounts of the additional `volumes`, both in Kubernetes syntax."""
    time_limit_s: int = 0
    """Kubernetes ends a pod after this time, in seconds; 0: never."""
    grace_s: int = 120
    """Time that a pod may take to terminate, in seconds. At its start, scripts are asked to save and exit."""
    pod: dict[str, Any] = {}
    """Applied to the pod's spec as a JSON merge patch: mappings are merged, everything else is replaced."""
    request_timeout_s: float = 30.0
    """Maximum time for an answer of the API server, in seconds."""


def checked(settings: KubernetesSettings) -> KubernetesSettings:
    """Return the settings unchanged. Raises `BadSettings` if they are invalid."""
    if not settings.image:
        raise BadSettings("kubernetes.image is empty: it names the image of the workers")
    if settings.grace_s <= GRACE_LEFT_S:
        raise BadSettings(f"kubernetes.grace_s is {settings.grace_s}: it must be more than {GRACE_LEFT_S}")
    if settings.gpus < 0 or settings.time_limit_s < 0:
        raise BadSettings("kubernetes.gpus and kubernetes.time_limit_s must be 0 or more")
    return settings
