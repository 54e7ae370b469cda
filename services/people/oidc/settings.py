"""What an operator says of the provider that people sign in with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from services.kit.allowed_paths import ReachSettings
from services.kit.hosts_named import is_loopback, listed
from services.kit.settings import BadSettings

LONGEST_GROUP = 128


@dataclass(frozen=True)
class OidcSettings(ReachSettings):
    """Of one provider; without an issuer there is none."""

    oidc_issuer: str = ""
    """Address of the provider, as it says itself in its discovery document. Empty: no single sign-on."""
    oidc_name: str = "Single sign-on"
    """What the button of the sign-in page says."""
    oidc_client_id: str = ""
    """By which the provider knows this cluster."""
    oidc_client_secret: str = ""
    """Empty for a public client, which proves itself by PKCE alone."""
    oidc_client_secret_file: Path | None = None
    """File that holds the secret instead."""
    oidc_redirect_url: str = ""
    """Where the provider sends people back, as registered there. Empty: made of the address they use."""
    oidc_scopes: str = "openid profile email"
    """What is asked for, with blanks; providers often want one more for groups."""
    oidc_username_claim: str = "preferred_username"
    """What a user is called here who signs in for the first time."""
    oidc_display_name_claim: str = "name"
    """Which claim holds the name that is shown of somebody."""
    oidc_groups_claim: str = "groups"
    """Which claim lists the groups of somebody."""
    oidc_allowed_groups: str = ""
    """Who is in none of these groups, with commas, may not sign in; empty: everybody may."""
    oidc_admin_groups: str = ""
    """Members of one of these are administrators, others are not; empty: that is decided here."""
    oidc_groups: str = ""
    """Groups of the cluster that the provider fills, with commas: `name`, or `name there=name here`."""
    oidc_provision: bool = True
    """Whether who has no account is given one when they first sign in."""
    oidc_leeway_s: float = 60.0
    """By how much the provider's clock may differ from ours."""


def checked(settings: OidcSettings) -> OidcSettings | None:
    """The settings, if there is a provider; raises `BadSettings` where they do not fit together."""
    if not settings.oidc_issuer:
        return None
    if not settings.oidc_client_id:
        raise BadSettings("STEADFAST_OIDC_ISSUER is set, and STEADFAST_OIDC_CLIENT_ID is not")
    if "openid" not in settings.oidc_scopes.split():
        raise BadSettings(f"STEADFAST_OIDC_SCOPES='{settings.oidc_scopes}' has no 'openid'")
    for _, here in mapping_of(settings.oidc_groups):
        if not 0 < len(here) <= LONGEST_GROUP or not here.isprintable():
            raise BadSettings(f"STEADFAST_OIDC_GROUPS: '{here}' cannot be the name of a group")
    for name in ("oidc_issuer", "oidc_redirect_url"):
        url = getattr(settings, name)
        if url and not is_safe(url):
            raise BadSettings(f"STEADFAST_{name.upper()}='{url}' is no https:// address")
    return settings


def is_safe(url: str) -> bool:
    """Whether nobody in between reads what is sent there: HTTPS, or this machine itself."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def secret_of(settings: OidcSettings) -> str:
    """The client's secret; raises `BadSettings`."""
    path = settings.oidc_client_secret_file
    if path is None:
        return settings.oidc_client_secret
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"STEADFAST_OIDC_CLIENT_SECRET_FILE={path} cannot be read: {error}") from error


def groups_of(text: str) -> frozenset[str]:
    """The groups that a setting lists."""
    return frozenset(listed(text))


def mapping_of(text: str) -> list[tuple[str, str]]:
    """Pairs of a group at the provider and the group here that its members are in."""
    pairs = (one.rpartition("=") for one in listed(text))
    return [((there or here).strip(), here.strip()) for there, _, here in pairs]
