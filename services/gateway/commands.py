"""What may be asked of the gateway itself."""

from __future__ import annotations

from det_contracts.commands import CloseSession
from det_contracts.events.gateway import SessionClosed
from services.gateway.domain import State
from services.kit.rules import Call, Ruling


def close_session(state: State, command: CloseSession, call: Call) -> Ruling:
    """Refuse a session's token from now on; doing so twice changes nothing."""
    if command.session_id in state.sessions:
        return Ruling()
    reason = f"{command.user} logged out"
    return Ruling([SessionClosed(command.session_id, command.user, reason)])


COMMANDS = {CloseSession: close_session}
