"""What the gateway keeps of requests: repeated ones, and those that tasks make."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.codec import event


@event("gateway.allocation.served", key="allocation_id")
class Served(msgspec.Struct, frozen=True):
    """A task serves HTTP at an address that the gateway can reach."""

    allocation_id: str
    address: str
    """`host:port`."""
    reason: str
    account: str = ""
    """For a shell: the login name, which is the host user it runs as."""


@event("gateway.allocation.gather_joined", key="allocation_id")
class GatherJoined(msgspec.Struct, frozen=True, kw_only=True):
    """A member of an allocation contributed to an all-gather (scheduling spec, section 8.6).

    Contributions are combined in log order, `peers` of them at a time.
    """

    allocation_id: str
    request_id: str
    """Id of the member's request. A repetition is the same contribution."""
    peers: int
    data: Any
    """Arbitrary JSON."""
    reason: str


@event("gateway.creation.kept", key="request_id")
class CreationKept(msgspec.Struct, frozen=True):
    """Something was created for a request with an `Idempotency-Key`. Repeated requests return it."""

    request_id: str
    """Derived from the user and the key."""
    key: str
    digest: str
    """Digest of the complete request. A different request with the same key is refused."""
    value: Any
    """The answer to the command: the id of the created object."""
    reason: str
