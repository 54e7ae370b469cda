"""Preconditions for starting a cluster."""

from __future__ import annotations

import socket
from dataclasses import asdict
from typing import Any

from services.kit.disk_space import format_size, space_at
from services.kit.host_addresses import is_loopback
from services.local.home import Home, Plan
from services.local.processes import is_supervisor

INITIAL_PASSWORD = "STEADFAST_INITIAL_PASSWORD"  # noqa: S105 - the name of a variable
MIN_FREE_BYTES = 64 << 20
"""Free bytes required for a first start: empty streams, five databases, some output."""

SECRET_FIELDS = ("settings", "pools_content")
"""Plan fields whose values are not shown, because they may contain keys of a store or registry."""


class CannotStart(Exception):
    """The cluster did not start. The text says why and where to look."""


def is_running(home: Home) -> bool:
    """Whether the supervisor of a cluster is running."""
    return is_supervisor((home.read("processes.json") or {}).get("supervisor", 0))


def check_same_options(plan: Plan, home: Home, *, fresh: bool) -> None:
    """Raise `CannotStart` with the differences if a running cluster does not match the plan."""
    changes = differences(home.plan(), plan) + (["  data: kept -> deleted"] if fresh else [])
    if changes:
        raise CannotStart(
            f"cluster '{plan.name}' is already running with other options:\n"
            + "\n".join(changes)
            + "\nTo replace it and end its work: --force. To start another one beside it, give it "
            "another name and another port (--name, --port; det: --cluster-name, --master-port)"
        )


def differences(before: Plan | None, plan: Plan) -> list[str]:
    """Return how a plan differs from an earlier one, one line per value. Secret ones are not shown."""
    earlier = asdict(before) if before is not None else {}
    return [
        change
        for name, value in asdict(plan).items()
        if earlier.get(name) != value
        for change in _changes(name, earlier.get(name), value)
    ]


def _changes(name: str, before: Any, wanted: Any) -> list[str]:
    """Describe the differences in one field, one per line. Values that may be secret are not shown."""
    if name not in SECRET_FIELDS:
        return [f"  {name}: {before!r} -> {wanted!r}"]
    before = before or {}
    return [
        f"  {name}.{key}: {'new' if key not in before else 'changed' if key in wanted else 'removed'}"
        for key in sorted({*before, *wanted})
        if before.get(key) != wanted.get(key)
    ]


def check_space(home: Home) -> None:
    """Raise `CannotStart` if there is not enough disk space to start."""
    space = space_at(home.path)
    if space.free < MIN_FREE_BYTES:
        raise CannotStart(
            f"there is not enough disk space for a cluster: {format_size(space.free)} are free at "
            f"{home.path}, {format_size(MIN_FREE_BYTES)} are needed. Make room, or choose another "
            "disk by STEADFAST_HOME"
        )


def check_password(plan: Plan, home: Home, password: str, *, fresh: bool = False) -> None:
    """Raise `CannotStart` if anyone who can reach a new cluster could log in without a password.

    For a cluster that ran before, the gateway itself checks and reports this; with `fresh` its users are
    deleted.
    """
    given_password = (
        password or plan.settings.get(INITIAL_PASSWORD) or plan.settings.get(f"{INITIAL_PASSWORD}_FILE")
    )
    has_users = not fresh and (home.path / "databases" / "gateway.db").exists()
    if given_password or is_loopback(plan.host) or has_users:
        return
    raise CannotStart(
        f"other machines reach a cluster that listens on {plan.host}, and its users 'admin' and 'determined' "
        f"have no password yet: set one with {INITIAL_PASSWORD} in the environment, or with "
        "--initial-password-file (det: --initial-user-password)"
    )


def check_port(plan: Plan) -> None:
    """Raise `CannotStart` if the gateway's port is in use."""
    with socket.socket() as probe:
        # As the gateway does: connections of a cluster that has just ended keep the port for a minute
        # otherwise.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((plan.host, plan.port))
        except OSError as error:
            raise CannotStart(
                f"port {plan.port} on {plan.host} cannot be used ({error.strerror}); "
                "choose another: --port (det: --master-port)"
            ) from None
