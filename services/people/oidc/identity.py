"""Converts a provider's claims to the identity that signs in here."""

from __future__ import annotations

from typing import Any

import msgspec

from services.kit.names import latin_look, name_problem
from services.people.oidc.provider_http import NotAuthenticated
from services.people.oidc.settings import OidcSettings, groups_of, mapping_of

MAX_NAME_CHARACTERS = 128
MAX_GROUP_CHARACTERS = 256


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A user as the provider knows them."""

    issuer: str
    subject: str
    """The user's permanent id at the provider, independent of their name."""
    username: str
    display_name: str
    groups: tuple[str, ...]
    """Those of the user's groups that have a meaning here."""
    admin: bool | None
    """Whether the user administers this cluster. None: managed here."""
    managed: tuple[str, ...]
    """Groups of the cluster that the provider fills."""
    member_of: tuple[str, ...]
    """Those of the managed groups that the user is in."""


def identity(settings: OidcSettings, claims: dict[str, Any]) -> Identity:
    """The identity that the claims prove. Raises `NotAuthenticated`."""
    groups = _groups(claims.get(settings.oidc_groups_claim))
    allowed, admins = groups_of(settings.oidc_allowed_groups), groups_of(settings.oidc_admin_groups)
    if allowed and not allowed & groups:
        raise NotAuthenticated("you are in none of the provider's groups that may use this cluster")
    mapping = mapping_of(settings.oidc_groups)
    relevant = allowed | admins | {there for there, _ in mapping}
    return Identity(
        issuer=settings.oidc_issuer,
        subject=claims["sub"],
        username=_username(settings, claims),
        display_name=_display_name(claims.get(settings.oidc_display_name_claim)),
        groups=tuple(sorted(groups & relevant)),
        admin=bool(admins & groups) if admins else None,
        managed=tuple(sorted({here for _, here in mapping})),
        member_of=tuple(sorted({here for there, here in mapping if there in groups})),
    )


def _username(settings: OidcSettings, claims: dict[str, Any]) -> str:
    claim = settings.oidc_username_claim
    name = claims.get(claim)
    if not isinstance(name, str) or not name.strip():
        raise NotAuthenticated(
            f"the provider does not send '{claim}' for you: an administrator may choose another claim with "
            "STEADFAST_OIDC_USERNAME_CLAIM, or ask for more with STEADFAST_OIDC_SCOPES"
        )
    # Otherwise anybody who registers another person's address at the provider is that person here.
    if claim == "email" and claims.get("email_verified") is not True:
        raise NotAuthenticated("the provider has not verified your e-mail address")
    return name


def _display_name(claim: Any) -> str:
    """The printable part of a display name. It has no effect beyond being shown."""
    text = claim if isinstance(claim, str) else ""
    shown = "".join(char for char in text if char.isprintable())[:MAX_NAME_CHARACTERS].strip()
    deceives = latin_look(shown) == "admin" or name_problem(shown, MAX_NAME_CHARACTERS)
    return "" if deceives else shown


def _groups(claim: Any) -> frozenset[str]:
    listed = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return frozenset(
        group for group in listed if isinstance(group, str) and 0 < len(group) <= MAX_GROUP_CHARACTERS
    )
