"""Warns at submit about container images that the available workers would not use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_contracts.expconf.environment import DEFAULT_IMAGES
from services.catalogue.domain.state import State

PROCESS_LAUNCHER = "process"


def unused_image_warnings(config: Mapping[str, Any], pool: str, state: State) -> list[str]:
    """Warnings about images that workers of a pool would not use; empty if all of them use images.

    There is no warning for a pool without workers, which may still get either kind.
    """
    images = named_images(config)
    workers = [worker for worker in state.workers.values() if worker.pool == pool]
    process_workers = sorted(worker.id for worker in workers if worker.launcher == PROCESS_LAUNCHER)
    if not images or not process_workers:
        return []
    which = (
        "the workers"
        if len(process_workers) == len(workers)
        else f"some workers ({', '.join(process_workers[:3])})"
    )
    return [
        f"environment.image {', '.join(images)} is not used: {which} of pool '{pool}' start tasks as plain "
        "processes, with the Python of their host (STEADFAST_WORKER_LAUNCHER)"
    ]


def named_images(config: Mapping[str, Any]) -> list[str]:
    """The images named by a configuration, completed or not, without the default images."""
    environment = config.get("environment")
    image = environment.get("image") if isinstance(environment, Mapping) else None
    values = image.values() if isinstance(image, Mapping) else [image]
    named = [value for value in values if isinstance(value, str) and value]
    return list(dict.fromkeys(value for value in named if value not in DEFAULT_IMAGES.values()))
