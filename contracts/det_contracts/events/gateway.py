"""What the gateway decides: who may ask."""

from __future__ import annotations

import msgspec

from det_contracts.codec import event


@event("gateway.session.closed", key="session_id")
class SessionClosed(msgspec.Struct, frozen=True):
    """The user logged out; the session's token is refused from now on, by every replica."""

    session_id: str
    user: str
    reason: str
