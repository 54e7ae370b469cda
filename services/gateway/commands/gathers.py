"""What processes of an allocation tell: shares of all-gathers, and where they answer HTTP."""

from __future__ import annotations

import msgspec

from det_contracts import ids
from det_contracts.commands import JoinGather, Serve
from det_contracts.events.gateway import GatherJoined, Served
from det_contracts.problems import invalid, not_found
from services.gateway.domain import State
from services.kit.rules import Call, Ruling

MOST_GATHERED_BYTES = 64 * 1024


def serve(state: State, command: Serve, call: Call) -> Ruling:
    """Take the address of a task; the same again has no effect."""
    if command.allocation_id not in state.live:
        raise not_found("live allocation", command.allocation_id)
    task = state.tasks.get(ids.task_of(command.allocation_id))
    if task is None:
        raise invalid(f"allocation {command.allocation_id} is of no task that answers HTTP")
    host, colon, port = command.address.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 2**16):
        raise invalid(f"proxyAddress is '{command.address}': host:port is expected")
    if task.address == command.address:
        return Ruling()
    return Ruling([Served(command.allocation_id, command.address, "the task said so")])


def join_gather(state: State, command: JoinGather, call: Call) -> Ruling:
    """Take a member's share of an all-gather; the same request again is the same share."""
    if command.allocation_id not in state.live:
        raise not_found("allocation", command.allocation_id)
    if not 1 <= command.peers <= 10_000:
        raise invalid(f"numPeers is {command.peers}: it must be 1 to 10000")
    if len(msgspec.json.encode(command.data)) > MOST_GATHERED_BYTES:
        raise invalid(f"the data of an all-gather is limited to {MOST_GATHERED_BYTES} bytes")
    known = state.gatherings.get(command.allocation_id)
    if known is not None and known.peers != command.peers:
        raise invalid(f"numPeers is {command.peers}, other members of the allocation said {known.peers}")
    if known is not None and any(share.request_id == command.request_id for share in known.shares):
        return Ruling()
    return Ruling(
        [
            GatherJoined(
                allocation_id=command.allocation_id,
                request_id=command.request_id,
                peers=command.peers,
                data=command.data,
                reason="a member of the allocation asked for it",
            )
        ]
    )
