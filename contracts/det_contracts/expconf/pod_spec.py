"""The Kubernetes part of an environment: stored, merged, and checked for fields that the platform sets."""

from __future__ import annotations

from typing import Any

from det_contracts.expconf.faults import Faults, format_value
from det_contracts.expconf.scalars import Anything

OWN_CONTAINER = "determined-container"
ELSEWHERE = "set it in the experiment config"
CONTAINER_KEYS = {
    "image": f"container Image is not configurable, {ELSEWHERE}",
    "command": "container Command is not configurable",
    "args": "container Args are not configurable",
    "workingDir": "container WorkingDir is not configurable",
    "ports": "container Ports are not configurable",
    "livenessProbe": "container LivenessProbe is not configurable",
    "readinessProbe": "container ReadinessProbe is not configurable",
    "startupProbe": "container StartupProbe is not configurable",
    "lifecycle": "container Lifecycle is not configurable",
    "terminationMessagePath": "container TerminationMessagePath is not configurable",
    "terminationMessagePolicy": "container TerminationMessagePolicy is not configurable",
    "imagePullPolicy": f"container ImagePullPolicy is not configurable, {ELSEWHERE} (force_pull_image)",
    "securityContext": f"container SecurityContext is not configurable, {ELSEWHERE}",
}
# The keys by which Kubernetes identifies list entries when it merges two pods.
LIST_KEYS = ("name", "mountPath", "containerPort")


class PodSpec(Anything, frozen=True):
    """A pod.

    Containers other than the trial's are unrestricted (experiment configuration spec, section 2.6).
    """

    def read(self, value: Any, at: str, faults: Faults) -> Any:
        if not isinstance(value, dict):
            faults.add(at, f"must be a map, not {format_value(value)}")
            return value
        if _inner(value, "metadata").get("name") is not None:
            faults.add(f"{at}.metadata.name", "pod Name is not a configurable option")
        containers = _inner(value, "spec").get("containers")
        for index, container in enumerate(containers if isinstance(containers, list) else []):
            if isinstance(container, dict) and container.get("name") == OWN_CONTAINER:
                for key in container.keys() & CONTAINER_KEYS.keys():
                    faults.add(f"{at}.spec.containers[{index}].{key}", CONTAINER_KEYS[key])
        return value

    def merge(self, high: Any, low: Any) -> Any:
        key = _list_key(high, low)
        if key is None:
            return super().merge(high, low)
        by_key = {item[key]: item for item in low}
        merged = [self.merge(item, by_key.pop(item[key], None)) for item in high]
        return merged + list(by_key.values())


def _inner(value: dict[str, Any], key: str) -> dict[str, Any]:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _list_key(high: Any, low: Any) -> str | None:
    if not isinstance(high, list) or not isinstance(low, list):
        return None
    items = [*high, *low]
    for key in LIST_KEYS:
        if items and all(isinstance(item, dict) and isinstance(item.get(key), str | int) for item in items):
            return key
    return None


POD_SPEC = PodSpec()
