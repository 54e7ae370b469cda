"""To the gateway: sign-in, sessions and API tokens."""

from __future__ import annotations

import msgspec

from det_contracts.events.gateway import TokenScope
from det_contracts.ownership import command


@command("gateway")
class OpenSession(msgspec.Struct, frozen=True, kw_only=True, tag="open_session"):
    """To the gateway: a user logged in."""

    session_id: str
    user_id: int
    opened_at: float
    until: float
    address: str
    client: str
    user: str


@command("gateway")
class SignIn(msgspec.Struct, frozen=True, kw_only=True, tag="sign_in"):
    """To the gateway: a user signed in with a provider. `value` of the answer: the user's id."""

    issuer: str
    subject: str
    username: str
    """Name for a new account, if the user has none yet and `provision` allows creating one."""
    display_name: str
    groups: tuple[str, ...]
    admin: bool | None
    """Whether the user is an administrator; None: unchanged."""
    provision: bool
    managed: tuple[str, ...] = ()
    """Names of groups here whose members are determined by the provider."""
    member_of: tuple[str, ...] = ()
    """Those of them that the user belongs to."""


@command("gateway")
class RenewSession(msgspec.Struct, frozen=True, kw_only=True, tag="renew_session"):
    """To the gateway: a session was used, and is extended."""

    session_id: str
    until: float


@command("gateway")
class CloseSession(msgspec.Struct, frozen=True, kw_only=True, tag="close_session"):
    """To the gateway's own log: a user logged out, or a session was revoked."""

    session_id: str
    user: str
    revoked: bool = False


@command("gateway")
class CreateToken(msgspec.Struct, frozen=True, kw_only=True, tag="create_token"):
    """To the gateway: create an API token. `value` of the answer: its id."""

    token_id: str
    user_id: int
    name: str
    scope: TokenScope
    digest: str
    lives_s: float
    user: str


@command("gateway")
class RevokeToken(msgspec.Struct, frozen=True, kw_only=True, tag="revoke_token"):
    """To the gateway: refuse an API token from now on."""

    token_id: str
    user: str
