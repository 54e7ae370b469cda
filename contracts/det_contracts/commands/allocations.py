"""To the gateway, about running tasks: where they listen, and what their members exchange."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.ownership import command


@command("gateway")
class Serve(msgspec.Struct, frozen=True, kw_only=True, tag="serve"):
    """To the gateway's own log: a task serves HTTP at `host:port`; to a shell one logs in as `account`."""

    allocation_id: str
    address: str
    account: str = ""
    user: str


@command("gateway")
class JoinGather(msgspec.Struct, frozen=True, kw_only=True, tag="join_gather"):
    """To the gateway's own log: a member's contribution to an all-gather in an allocation. Idempotent."""

    allocation_id: str
    request_id: str
    peers: int
    data: Any
    user: str
