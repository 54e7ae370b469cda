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
