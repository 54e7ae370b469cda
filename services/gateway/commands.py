"""What may be asked of the gateway itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts.commands import CloseSession, JoinGather, RemoveTemplate, SetTemplate
from det_contracts.events.gateway import GatherJoined, SessionClosed, TemplateRemoved, TemplateSet
from det_contracts.problems import Problem, Refused, invalid, not_found
from services.gateway.domain import State
from services.kit.rules import Call, Ruling


def close_session(state: State, command: CloseSession, call: Call) -> Ruling:
    """Refuse a session's token from now on; doing so twice changes nothing."""
    if command.session_id in state.sessions:
        return Ruling()
    reason = f"{command.user} logged out"
    return Ruling([SessionClosed(command.session_id, command.user, reason)])


def template_id(name: str) -> str:
    """The id of the template of a name: 16 hexadecimal digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def set_template(state: State, command: SetTemplate, call: Call) -> Ruling:
    """Keep a template, as far as `replaces` allows; what is so already has no effect."""
    if not command.name.strip():
        raise invalid("a template needs a name")
    known = state.templates.get(template_id(command.name))
    if known is None and command.replaces:
        raise not_found("template", command.name)
    if known is not None and command.replaces is False:
        raise Refused(Problem("already_exists", f"template '{command.name}' exists already"))
    if known is not None and known.config == command.config:
        return Ruling()
    reason = f"{'changed' if known else 'made'} by {command.user}"
    return Ruling(
        [
            TemplateSet(
                template_id=template_id(command.name),
                name=command.name,
                config=command.config,
                reason=reason,
            )
        ]
    )


def remove_template(state: State, command: RemoveTemplate, call: Call) -> Ruling:
    """Forget a template."""
    id = template_id(command.name)
    if id not in state.templates:
        raise not_found("template", command.name)
    return Ruling([TemplateRemoved(template_id=id, name=command.name, reason=f"removed by {command.user}")])


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


COMMANDS: dict[Any, Callable[[State, Any, Call], Ruling]] = {
    CloseSession: close_session,
    JoinGather: join_gather,
    SetTemplate: set_template,
    RemoveTemplate: remove_template,
}
