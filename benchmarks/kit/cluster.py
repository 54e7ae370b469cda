"""A local cluster for benchmarks, in a temporary home."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from services.kit import broker
from services.local.control import down, up
from services.local.home import Home, Plan


@contextlib.contextmanager
def running_cluster(slots: int, agents: int = 1) -> Iterator[Home]:
    """A cluster with one worker or more, each with so many slots, for the length of a `with`."""
    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
        home = Home("bench", Path(folder))
        with broker.held_port() as door:
            port, ends_with = broker.port_of(door), os.getpid()
            plan = Plan(name="bench", port=port, gpu=False, slots=slots, agents=agents, ends_with=ends_with)
            up(plan, home)
            try:
                yield home
            finally:
                down(home)


@contextlib.contextmanager
def user_cluster(slots: int) -> Iterator[Any]:
    """The same from the users' side: a `LocalCluster` of the tests."""
    from tests.fixtures.local_cluster import LocalCluster

    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
        cluster = LocalCluster(Path(folder), slots=slots)
        try:
            yield cluster.up()
        finally:
            cluster.down()


def mark(home: Home) -> str:
    """A text that all processes of a cluster carry: its supervisor knows only the folder of all homes."""
    return str(home.path.parent.parent)


def broker_url(home: Home) -> tuple[str, str]:
    """Address and operator credentials of a cluster's broker."""
    ports = home.read("ports.json") or {}
    return f"nats://127.0.0.1:{ports['broker']}", str(home.path / "secrets" / "operator.creds")


def address(home: Home) -> str:
    """Address of a cluster's gateway."""
    plan = home.plan()
    return f"http://127.0.0.1:{plan.port if plan else 0}"
