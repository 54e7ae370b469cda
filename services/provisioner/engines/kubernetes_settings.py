"""`provider.kubernetes` of a pool: what is to be said of the pods that its workers are."""

from __future__ import annotations

from typing import Any

import msgspec

from services.kit.settings import BadSettings

GRACE_LEFT_S = 20
"""Of the time that Kubernetes gives a pod to end, so much is the worker's own, to end what it runs."""


class KubernetesSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is empty is left to the cluster's own defaults."""

    image: str
    """Holds steadfast, and what scripts import."""
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    command: tuple[str, ...] = ("python", "-P", "-m", "worker")
    namespace: str = ""
    """Empty: that of the provisioner's own pod, or of the kubeconfig's context."""
    kubeconfig: str = ""
    """File; empty: the service account of the provisioner's pod, else `KUBECONFIG`, else ~/.kube/config."""
    context: str = ""
    """Of the kubeconfig; empty: its current one."""
    service_account: str = ""
    """Of the workers. Its token is never mounted: scripts have no business with the API server."""
    requests: dict[str, str] = {}
    """As Kubernetes writes it: `cpu: "8"`, `memory: 64Gi`; what only `limits` has is requested, too."""
    limits: dict[str, str] = {}
    gpus: int = 0
    """GPUs that a worker asks for; 0: its slots are CPU slots."""
    gpu_resource: str = "nvidia.com/gpu"
    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = ()
    priority_class: str = ""
    runtime_class: str = ""
    labels: dict[str, str] = {}
    """Beside those by which pods are found again, for example `kueue.x-k8s.io/queue-name`."""
    annotations: dict[str, str] = {}
    environment: dict[str, str] = {}
    """Settings of the workers. A pod inherits none of the provisioner's."""
    environment_from: tuple[str, ...] = ()
    """Secrets whose entries are settings of the workers, such as keys of an S3 store."""
    keys_secret: str = ""
    """Secret with `worker-signing.json`, `trial-signing.json` and `sealing-key`."""
    run_tasks_as: str = "10002:10002"
    """Whom scripts run as, so that they do not read the worker's keys. The worker is root in its container
    then, with six capabilities, which the Pod Security Standard `baseline` allows. Empty: the worker and its
    scripts are one user who is not root, as `restricted` wants it; a script can read the keys then."""
    home_size: str = ""
    """Most that the worker's folder may take on its node: `100Gi`."""
    shm_size: str = "1Gi"
    """Of /dev/shm, which data loaders and NCCL use; it counts as memory. Empty: the runtime's 64 MiB."""
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    """Of the further `volumes`, as Kubernetes writes both."""
    time_limit_s: int = 0
    """After so long Kubernetes ends a pod; 0: never."""
    grace_s: int = 120
    """So long a pod that is to end may take. Scripts are asked to save and leave at its beginning."""
    pod: dict[str, Any] = {}
    """Laid over the spec of the pod as a JSON merge patch: mappings are joined, all else is replaced."""
    request_timeout_s: float = 30.0
    """So long the API server may take to answer."""


def checked(settings: KubernetesSettings) -> KubernetesSettings:
    """The same; raises `BadSettings` for what makes no sense."""
    if not settings.image:
        raise BadSettings("kubernetes.image is empty: it names the image of the workers")
    if settings.grace_s <= GRACE_LEFT_S:
        raise BadSettings(f"kubernetes.grace_s is {settings.grace_s}: it must be more than {GRACE_LEFT_S}")
    if settings.gpus < 0 or settings.time_limit_s < 0:
        raise BadSettings("kubernetes.gpus and kubernetes.time_limit_s must be 0 or more")
    return settings
