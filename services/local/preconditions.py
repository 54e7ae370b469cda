"""What must hold before a cluster is started."""

from __future__ import annotations

import socket
from dataclasses import asdict
from typing import Any

from services.kit.disk_space import size_in_words, space_at
from services.kit.hosts_named import is_loopback
from services.local.home import Home, Plan
from services.local.processes import is_supervisor

INITIAL_PASSWORD = "STEADFAST_INITIAL_PASSWORD"  # noqa: S105 - the name of a variable
ROOM_TO_START = 64 << 20
"""Bytes that must be free for a first start: empty streams, five databases, some output."""

WITH_SECRETS = ("settings", "pools_content")
"""Fields of a plan that are not shown: they may hold keys of a store, or of a registry."""


class CannotStart(Exception):
    """The cluster did not come up; the text says why and where to look."""


def is_running(home: Home) -> bool:
    """Whether the supervisor of a cluster runs."""
    return is_supervisor((home.read("processes.json") or {}).get("supervisor", 0))


def check_alike(plan: Plan, home: Home, *, fresh: bool) -> None:
    """Raise `CannotStart`, with what differs, when a cluster that runs is not what is wanted."""
    before, wanted = (asdict(candidate) if candidate else {} for candidate in (home.plan(), plan))
    changes = [
        change
        for name, value in wanted.items()
        if before.get(name) != value
        for change in _changes(name, before.get(name), value)
    ]
    changes += ["  data: kept -> forgotten"] if fresh else []
    if changes:
        raise CannotStart(
            f"cluster '{plan.name}' runs already, and was started otherwise:\n"
            + "\n".join(changes)
            + "\nTo replace it, which ends what runs in it: --force. To start another one beside it, give it "
            "another name and another port (--name, --port; det: --cluster-name, --master-port)"
        )


def _changes(name: str, before: Any, wanted: Any) -> list[str]:
    """What differs in a field of a plan, a line each; values that may be secrets are not shown."""
    if name not in WITH_SECRETS:
        return [f"  {name}: {before!r} -> {wanted!r}"]
    before = before or {}
    return [
        f"  {name}.{key}: {'new' if key not in before else 'changed' if key in wanted else 'gone'}"
        for key in sorted({*before, *wanted})
        if before.get(key) != wanted.get(key)
    ]


def check_space(home: Home) -> None:
    """Raise `CannotStart` when a cluster has no room to begin."""
    space = space_at(home.path)
    if space.free < ROOM_TO_START:
        raise CannotStart(
            f"there is not enough disk space for a cluster: {size_in_words(space.free)} are free at "
            f"{home.path}, {size_in_words(ROOM_TO_START)} are needed. Make room, or choose another "
            "disk by STEADFAST_HOME"
        )


def check_password(plan: Plan, home: Home, password: str, *, fresh: bool = False) -> None:
    """Raise `CannotStart` when a new cluster would let anybody in who reaches it.

    What holds for one that has run before its gateway knows, and says; with `fresh` that is forgotten.
    """
    given_password = (
        password or plan.settings.get(INITIAL_PASSWORD) or plan.settings.get(f"{INITIAL_PASSWORD}_FILE")
    )
    has_users = not fresh and (home.path / "databases" / "gateway.db").exists()
    if given_password or is_loopback(plan.host) or has_users:
        return
    raise CannotStart(
        f"other machines reach a cluster that listens on {plan.host}, and its users 'admin' and 'determined' "
        f"have no password yet: give them one by {INITIAL_PASSWORD} in the environment, or by "
        "--initial-password-file (det: --initial-user-password)"
    )


def check_port(plan: Plan) -> None:
    """Raise `CannotStart` when another program has the gateway's port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((plan.host, plan.port))
        except OSError as error:
            raise CannotStart(
                f"port {plan.port} on {plan.host} cannot be used ({error.strerror}); "
                "choose another: --port (det: --master-port)"
            ) from None
