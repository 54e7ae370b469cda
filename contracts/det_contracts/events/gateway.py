"""What the gateway decides: who may ask, and with which templates."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.codec import event


@event("gateway.session.closed", key="session_id")
class SessionClosed(msgspec.Struct, frozen=True):
    """The user logged out; the session's token is refused from now on, by every replica."""

    session_id: str
    user: str
    reason: str


@event("gateway.template.set", key="template_id")
class TemplateSet(msgspec.Struct, frozen=True, kw_only=True):
    """A named partial configuration is there, or has another content from now on."""

    template_id: str
    """Made of the name, which may hold what a subject may not."""
    name: str
    config: dict[str, Any]
    """In normal form."""
    reason: str


@event("gateway.template.removed", key="template_id")
class TemplateRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """The template is gone; experiments that were submitted with it keep what it gave them."""

    template_id: str
    name: str
    reason: str


@event("gateway.allocation.gather_joined", key="allocation_id")
class GatherJoined(msgspec.Struct, frozen=True, kw_only=True):
    """A member of an allocation gave its share of an all-gather (scheduling spec, section 8.6).

    Shares are put together in the order of the log, `peers` of them at a time.
    """

    allocation_id: str
    request_id: str
    """Of the member's request; the same again is the same share."""
    peers: int
    data: Any
    """Any JSON."""
    reason: str
