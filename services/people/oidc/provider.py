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

from services.people.oidc.pending import PendingSignIn
from services.people.oidc.provider_http import NotAuthenticated, ProviderClient, ProviderUnavailable
from services.people.oidc.settings import OidcSettings, is_safe, secret_of

CACHE_S = 3600.0
"""How long endpoints and keys are cached, in seconds."""
RETRY_S = 10.0
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


class CachedMetadata(msgspec.Struct, frozen=True):
    """The cached metadata and keys, and when they were fetched."""

    metadata: Metadata
    keys: KeySet
    at: float
    """Monotonic seconds."""


class Provider:
    """An identity provider."""

    def __init__(self, settings: OidcSettings, http: ProviderClient) -> None:
        self._settings, self._http = settings, http
        self._secret = secret_of(settings)
        self._cached: CachedMetadata | None = None
        self._lock = threading.Lock()

    def sign_in_url(self, pending: PendingSignIn) -> str:
        """The URL to which to send a browser to sign in. Raises `ProviderUnavailable`."""
        metadata = self._metadata_and_keys().metadata
        if not is_safe(metadata.authorization_endpoint):
            raise ProviderUnavailable("the provider's sign-in address is not https://")
        url, _ = self._client(metadata, pending).create_authorization_url(
            metadata.authorization_endpoint,
            state=pending.state,
            code_verifier=pending.verifier,
            nonce=pending.nonce,
        )
        return str(url)

    def claims(self, pending: PendingSignIn, code: str, now: float) -> dict[str, Any]:
        """The provider's claims about the user who returned with a code.

        Raises `NotAuthenticated` or `ProviderUnavailable`.
        """
        metadata = self._metadata_and_keys().metadata
        try:
            token = self._client(metadata, pending).fetch_token(
                metadata.token_endpoint, code=code, code_verifier=pending.verifier
            )
        except OAuth2Error as error:
            raise NotAuthenticated(f"the provider refuses: {_error_code(error.error)}") from error
        except ValueError as error:
            raise ProviderUnavailable("the provider's answer is not a token") from error
        claims = self._id_token_claims(token.get("id_token"), pending, now)
        return claims | self._userinfo_claims(metadata, claims, token.get("access_token"))

    def _client(self, metadata: Metadata, pending: PendingSignIn) -> OAuth2Client:
        return OAuth2Client(
            session=self._http,
            client_id=self._settings.oidc_client_id,
            client_secret=self._secret or None,
            token_endpoint_auth_method=_auth_method(self._secret, metadata),
            scope=self._settings.oidc_scopes,
            redirect_uri=pending.redirect_url,
            code_challenge_method="S256",
        )

    def _id_token_claims(self, text: Any, pending: PendingSignIn, now: float) -> dict[str, Any]:
        if not isinstance(text, str):
            raise NotAuthenticated(
                "the provider gave no ID token: is 'openid' among the scopes of this client?"
            )
        try:
            header = jws.extract_compact(text.encode()).headers()
            verified_claims = self._verify(text, header)
            claims = CodeIDToken(
                verified_claims,
                header,
                {
                    "iss": {"essential": True, "value": self._settings.oidc_issuer},
                    "aud": {"essential": True, "value": self._settings.oidc_client_id},
                },
                {"nonce": pending.nonce, "client_id": self._settings.oidc_client_id},
            )
            claims.validate(now=int(now), leeway=int(self._settings.oidc_leeway_s))
        except NotAuthenticated:
            raise
        except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise NotAuthenticated(f"the provider's ID token is not valid: {_reason(error)}") from error
        if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
            raise NotAuthenticated("the provider's ID token is not valid: 'sub' is not a valid name")
        return dict(claims)

    def _verify(self, text: str, header: Any) -> dict[str, Any]:
        """The claims of a token, verified with whichever of the provider's keys signed it."""
        # Keys rotate: an unknown one may be new. `RETRY_S` keeps forged tokens from making a request to the
        # provider each.
        for fresh in (False, True):
            for key in _candidates(self._metadata_and_keys(fresh=fresh).keys, header):
                try:
                    return dict(jwt.decode(text, key, algorithms=list(ALGORITHMS)).claims)
                except (JoseError, ValueError, TypeError):
                    continue
        raise NotAuthenticated("the provider's ID token is not valid: none of the provider's keys signed it")

    def _userinfo_claims(self, metadata: Metadata, claims: dict[str, Any], token: Any) -> dict[str, Any]:
        """Claims that some providers only return from their userinfo endpoint."""
        settings = self._settings
        wanted = (settings.oidc_username_claim, settings.oidc_display_name_claim, settings.oidc_groups_claim)
        missing = [name for name in (*wanted, "email_verified") if name not in claims]
        if not missing or not metadata.userinfo_endpoint or not isinstance(token, str):
            return {}
        userinfo = self._http.get(metadata.userinfo_endpoint, token).record()
        # The signed token says who it is. This answer is not signed, and must be about the same person.
        if userinfo.get("sub") != claims["sub"]:
            raise NotAuthenticated("the provider returned another user's details than those it signed")
        return {name: userinfo[name] for name in missing if name in userinfo}

    def _metadata_and_keys(self, *, fresh: bool = False) -> CachedMetadata:
        with self._lock:
            cached, now = self._cached, time.monotonic()
            age = now - cached.at if cached is not None else float("inf")
            if cached is None or age > (RETRY_S if fresh else CACHE_S):
                self._cached = cached = self._fetch(now)
            return cached

    def _fetch(self, now: float) -> CachedMetadata:
        issuer = self._settings.oidc_issuer
        url = issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            metadata = msgspec.convert(self._http.get(url).record(), Metadata)
        except msgspec.ValidationError as error:
            raise ProviderUnavailable(f"the provider's metadata at {url} is incomplete: {error}") from error
        # Whoever answers for another issuer could have its tokens accepted here.
        if metadata.issuer != issuer:
            raise ProviderUnavailable(
                f"the provider at {issuer} calls itself '{metadata.issuer[:200]}': "
                "set STEADFAST_OIDC_ISSUER to exactly that if it is the right one"
            )
        try:
            keys = KeySet.import_key_set(self._http.get(metadata.jwks_uri).record())  # type: ignore[arg-type]
        except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ProviderUnavailable(
                f"the provider's answer at {metadata.jwks_uri} is not a key set"
            ) from error
        return CachedMetadata(metadata, keys, now)


def _auth_method(secret: str, metadata: Metadata) -> str:
    if not secret:
        return "none"
    methods = metadata.token_endpoint_auth_methods_supported
    post = "client_secret_post" in methods and "client_secret_basic" not in methods
    return "client_secret_post" if post else "client_secret_basic"


def _candidates(keys: KeySet, header: Any) -> Iterable[Key]:
    kid = header.get("kid")
    for key in keys.keys:
        # A shared secret in the key set would let everybody sign who can read it.
        if key.key_type != "oct" and (kid is None or key.kid == kid):
            yield key


def _error_code(code: Any) -> str:
    """The provider's error code, if it has the form that the standards define."""
    return code if isinstance(code, str) and _CODE.fullmatch(code) else "it does not say why"


def _reason(error: Exception) -> str:
    return str(getattr(error, "description", "") or "it cannot be read")[:200]
