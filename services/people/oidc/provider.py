"""The OpenID Connect provider: its endpoints, its signing keys, and its claims about users. Blocking.

Authlib builds and parses the OAuth 2 and OpenID Connect messages; joserfc, by the same authors, verifies
signatures. Only the provider's endpoints and keys are cached between requests, for an hour.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from typing import Any

import msgspec
from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet

from services.people.oidc.asking import Asking, NotProven, ProviderAway
from services.people.oidc.pending import Pending
from services.people.oidc.settings import OidcSettings, is_safe, secret_of

KEPT_S = 3600.0
"""How long endpoints and keys are cached, in seconds."""
AGAIN_S = 10.0
"""Minimum interval between fetches of the keys when a signature uses an unknown key."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric signatures only. With an algorithm that uses a shared secret, anyone could sign with the public
key.
"""
_CODE = re.compile("[a-z_]{1,64}")


class Metadata(msgspec.Struct, frozen=True):
    """The fields used from the provider's discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class Kept(msgspec.Struct, frozen=True):
    """The cached metadata and keys, and when they were fetched."""

    metadata: Metadata
    keys: KeySet
    at: float
    """Monotonic seconds."""


class Provider:
    """An identity provider."""

    def __init__(self, settings: OidcSettings, asking: Asking) -> None:
        self._settings, self._asking = settings, asking
        self._secret = secret_of(settings)
        self._kept: Kept | None = None
        self._lock = threading.Lock()

    def address(self, pending: Pending) -> str:
        """The URL to which to send a browser to sign in. Raises `ProviderAway`."""
        metadata = self._known().metadata
        if not is_safe(metadata.authorization_endpoint):
            raise ProviderAway("the provider's sign-in address is not https://")
        url, _ = self._client(metadata, pending).create_authorization_url(
            metadata.authorization_endpoint,
            state=pending.state,
            code_verifier=pending.verifier,
            nonce=pending.nonce,
        )
        return str(url)

    def claims(self, pending: Pending, code: str, now: float) -> dict[str, Any]:
        """The provider's claims about the user who returned with a code.

        Raises `NotProven` or `ProviderAway`.
        """
        metadata = self._known().metadata
        try:
            token = self._client(metadata, pending).fetch_token(
                metadata.token_endpoint, code=code, code_verifier=pending.verifier
            )
        except OAuth2Error as error:
            raise NotProven(f"the provider refuses: {_coded(error.error)}") from error
        except ValueError as error:
            raise ProviderAway("the provider's answer is not a token") from error
        claims = self._signed(token.get("id_token"), pending, now)
        return claims | self._more(metadata, claims, token.get("access_token"))

    def _client(self, metadata: Metadata, pending: Pending) -> OAuth2Client:
        return OAuth2Client(
            session=self._asking,
            client_id=self._settings.oidc_client_id,
            client_secret=self._secret or None,
            token_endpoint_auth_method=_method(self._secret, metadata),
            scope=self._settings.oidc_scopes,
            redirect_uri=pending.redirect_url,
            code_challenge_method="S256",
        )

    def _signed(self, text: Any, pending: Pending, now: float) -> dict[str, Any]:
        if not isinstance(text, str):
            raise NotProven("the provider gave no ID token: is 'openid' among the scopes of this client?")
        try:
            header = jws.extract_compact(text.encode()).headers()
            found = self._verified(text, header)
            claims = CodeIDToken(
                found,
                header,
                {
                    "iss": {"essential": True, "value": self._settings.oidc_issuer},
                    "aud": {"essential": True, "value": self._settings.oidc_client_id},
                },
                {"nonce": pending.nonce, "client_id": self._settings.oidc_client_id},
            )
            claims.validate(now=int(now), leeway=int(self._settings.oidc_leeway_s))
        except NotProven:
            raise
        except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise NotProven(f"the provider's ID token is not valid: {_reason(error)}") from error
        if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
            raise NotProven("the provider's ID token is not valid: 'sub' is not a valid name")
        return dict(claims)

    def _verified(self, text: str, header: Any) -> dict[str, Any]:
        """The claims of a token, verified with whichever of the provider's keys signed it."""
        for fresh in (False, True):
            for key in _candidates(self._known(fresh=fresh).keys, header):
                try:
                    return dict(jwt.decode(text, key, algorithms=list(ALGORITHMS)).claims)
                except (JoseError, ValueError, TypeError):
                    continue
        raise NotProven("the provider's ID token is not valid: none of the provider's keys signed it")

    def _more(self, metadata: Metadata, claims: dict[str, Any], token: Any) -> dict[str, Any]:
        """Claims that some providers only return from their userinfo endpoint."""
        known = self._settings
        wanted = (known.oidc_username_claim, known.oidc_display_name_claim, known.oidc_groups_claim)
        missing = [name for name in (*wanted, "email_verified") if name not in claims]
        if not missing or not metadata.userinfo_endpoint or not isinstance(token, str):
            return {}
        found = self._asking.get(metadata.userinfo_endpoint, token).record()
        if found.get("sub") != claims["sub"]:
            raise NotProven("the provider returned another user's details than those it signed")
        return {name: found[name] for name in missing if name in found}

    def _known(self, *, fresh: bool = False) -> Kept:
        with self._lock:
            kept, now = self._kept, time.monotonic()
            age = now - kept.at if kept is not None else float("inf")
            if kept is None or age > (AGAIN_S if fresh else KEPT_S):
                self._kept = kept = self._read(now)
            return kept

    def _read(self, now: float) -> Kept:
        issuer = self._settings.oidc_issuer
        url = issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            metadata = msgspec.convert(self._asking.get(url).record(), Metadata)
        except msgspec.ValidationError as error:
            raise ProviderAway(f"the provider's metadata at {url} is incomplete: {error}") from error
        if metadata.issuer != issuer:
            raise ProviderAway(
                f"the provider at {issuer} calls itself '{metadata.issuer[:200]}': "
                "set STEADFAST_OIDC_ISSUER to exactly that if it is the right one"
            )
        try:
            keys = KeySet.import_key_set(self._asking.get(metadata.jwks_uri).record())  # type: ignore[arg-type]
        except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ProviderAway(f"the provider's answer at {metadata.jwks_uri} is not a key set") from error
        return Kept(metadata, keys, now)


def _method(secret: str, metadata: Metadata) -> str:
    if not secret:
        return "none"
    known = metadata.token_endpoint_auth_methods_supported
    post = "client_secret_post" in known and "client_secret_basic" not in known
    return "client_secret_post" if post else "client_secret_basic"


def _candidates(keys: KeySet, header: Any) -> Iterable[Key]:
    kid = header.get("kid")
    for key in keys.keys:
        if key.key_type != "oct" and (kid is None or key.kid == kid):
            yield key


def _coded(said: Any) -> str:
    """The provider's error code, if it has the form that the standards define."""
    return said if isinstance(said, str) and _CODE.fullmatch(said) else "it does not say why"


def _reason(error: Exception) -> str:
    return str(getattr(error, "description", "") or "it cannot be read")[:200]
