"""The settings of the OpenID Connect provider."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from services.kit.allowed_paths import ReachSettings
from services.kit.host_addresses import is_loopback, split_list
from services.kit.settings import BadSettings

MAX_GROUP_CHARACTERS = 128


@dataclass(frozen=True)
class OidcSettings(ReachSettings):
    """Settings of one provider. Without an issuer there is none."""

    oidc_issuer: str = ""
    """The provider's issuer, exactly as in its discovery document. Empty: no single sign-on."""
    oidc_name: str = "Single sign-on"
    """The label of the button on the sign-in page."""
    oidc_client_id: str = ""
    """This cluster's client id at the provider."""
    oidc_client_secret: str = ""
    """The client's secret. Empty for a public client, which relies on PKCE alone."""
    oidc_client_secret_file: Path | None = None
    """File that holds the client's secret instead."""
    oidc_redirect_url: str = ""
    """The redirect URL registered at the provider. Empty: derived from the address that the user visits."""
    oidc_scopes: str = "openid profile email"
    """The requested scopes, separated by blanks. Providers often need another one for groups."""
    oidc_username_claim: str = "preferred_username"
    """The claim that names a new user at their first sign-in."""
    oidc_display_name_claim: str = "name"
    """The claim with the user's display name."""
    oidc_groups_claim: str = "groups"
    """The claim with the user's groups."""
    oidc_allowed_groups: str = ""
    """Comma-separated groups; only their members may sign in. Empty: everyone may."""
    oidc_admin_groups: str = ""
    """Comma-separated groups whose members, and only they, are administrators. Empty: managed here."""
    oidc_groups: str = ""
    """Comma-separated groups here that the provider fills: `name`, or `name there=name here`."""
    oidc_provision: bool = True
    """Whether a user without an account gets one at their first sign-in."""
    oidc_leeway_s: float = 60.0
    """Maximum difference between the provider's clock and ours, in seconds."""


def check_settings(settings: OidcSettings) -> OidcSettings | None:
    """The settings, or None without a provider. Raises `BadSettings` if they are inconsistent."""
    if not settings.oidc_issuer:
        return None
    if not settings.oidc_client_id:
        raise BadSettings("STEADFAST_OIDC_ISSUER is set, and STEADFAST_OIDC_CLIENT_ID is not")
    if "openid" not in settings.oidc_scopes.split():
        raise BadSettings(f"STEADFAST_OIDC_SCOPES='{settings.oidc_scopes}' has no 'openid'")
    for _, here in mapping_of(settings.oidc_groups):
        if not 0 < len(here) <= MAX_GROUP_CHARACTERS or not here.isprintable():
            raise BadSettings(f"STEADFAST_OIDC_GROUPS: '{here}' cannot be the name of a group")
    for name in ("oidc_issuer", "oidc_redirect_url"):
        url = getattr(settings, name)
        if url and not is_safe(url):
            raise BadSettings(f"STEADFAST_{name.upper()}='{url}' is not an https:// address")
    return settings


def is_safe(url: str) -> bool:
    """Whether traffic to the URL cannot be read on the way: HTTPS, or this machine itself."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def secret_of(settings: OidcSettings) -> str:
    """The client's secret. Raises `BadSettings`."""
    path = settings.oidc_client_secret_file
    if path is None:
        return settings.oidc_client_secret
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"STEADFAST_OIDC_CLIENT_SECRET_FILE={path} cannot be read: {error}") from error


def groups_of(text: str) -> frozenset[str]:
    """The groups listed in a setting."""
    return frozenset(split_list(text))


def mapping_of(text: str) -> list[tuple[str, str]]:
    """Pairs of a group at the provider and the group here that its members join."""
    pairs = (entry.rpartition("=") for entry in split_list(text))
    return [((there or here).strip(), here.strip()) for there, _, here in pairs]
