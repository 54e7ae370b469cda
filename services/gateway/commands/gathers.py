"""What members of an allocation give to each other."""

from __future__ import annotations

import msgspec

from det_contracts.commands import JoinGather
from det_contracts.events.gateway import GatherJoined
from det_contracts.problems import invalid, not_found
from services.gateway.domain import State
from services.kit.rules import Call, Ruling

MOST_GATHERED_BYTES = 64 * 1024


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
