"""What to tell of a container image at submit, where the workers at hand start plain processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_contracts.expconf.environment import DEFAULT_IMAGES
from services.catalogue.domain.state import State

PROCESS = "process"


def unused(config: Mapping[str, Any], pool: str, state: State) -> list[str]:
    """What to tell of an image that workers of a pool would not use; nothing where all of them use images.

    A pool without workers may get some of either kind: nothing is known of it yet.
    """
    images = named(config)
    workers = [worker for worker in state.workers.values() if worker.pool == pool]
    plain = sorted(worker.id for worker in workers if worker.launcher == PROCESS)
    if not images or not plain:
        return []
    which = "the workers" if len(plain) == len(workers) else f"some workers ({', '.join(plain[:3])})"
    return [
        f"environment.image {', '.join(images)} is not used: {which} of pool '{pool}' start tasks as plain "
        "processes, with the Python of their host (STEADFAST_WORKER_LAUNCHER)"
    ]


def named(config: Mapping[str, Any]) -> list[str]:
    """The images that a configuration names, completed or not; those that it has by default are none."""
    environment = config.get("environment")
    given = environment.get("image") if isinstance(environment, Mapping) else None
    values = given.values() if isinstance(given, Mapping) else [given]
    named = [value for value in values if isinstance(value, str) and value]
    return list(dict.fromkeys(value for value in named if value not in DEFAULT_IMAGES.values()))
