"""Administrators' commands to the gateway that concern the whole cluster."""

from __future__ import annotations

from typing import Literal

import msgspec

from det_contracts.ownership import command

Binding = Literal["add", "remove", "replace"]
LOG_LEVELS = {"trace": "DEBUG", "debug": "DEBUG", "info": "INFO", "warn": "WARNING", "warning": "WARNING"}
LOG_LEVELS |= dict.fromkeys(("error", "fatal", "panic"), "ERROR")
"""What people and masters of 0.25 call the levels of logs -> what they are called here."""


@command("gateway")
class RetryDecisions(msgspec.Struct, frozen=True, kw_only=True, tag="retry_decisions"):
    """To the gateway: make an owner retry the records that it parked."""

    owner: str
    user: str


@command("gateway")
class SkipEvent(msgspec.Struct, frozen=True, kw_only=True, tag="skip_event"):
    """To the gateway: make an owner skip an event that it cannot fold."""

    owner: str
    stream: str
    position: int
    subject: str
    error: str
    """Why it cannot be folded, as the owner reports it."""
    reason: str
    """Why it may be skipped, in the user's words."""
    user: str


@command("gateway")
class RebuildDatabase(msgspec.Struct, frozen=True, kw_only=True, tag="rebuild_database"):
    """To the gateway: have an owner's database rebuilt from the log."""

    owner: str
    user: str


@command("gateway")
class SetLogging(msgspec.Struct, frozen=True, kw_only=True, tag="set_logging"):
    """To the gateway: have the services print their own logs otherwise. None: as it is."""

    level: str | None = None
    """As people write it, in any case: `debug`, `warn`."""
    color: bool | None = None
    user: str


@command("gateway")
class BindPool(msgspec.Struct, frozen=True, kw_only=True, tag="bind_pool"):
    """To the gateway: change which workspaces may use a resource pool."""

    pool: str
    workspaces: tuple[int, ...]
    change: Binding
    """How the workspaces change: `add` allows them too, `remove` disallows them, `replace` sets them."""
    user: str
