"""Authentication for client scripts, under the names that they import."""

from __future__ import annotations

import getpass
import sys

from determined.common.api import errors
from determined.common.api.certs import Cert
from determined.transport import identity
from determined.transport.address import master_url
from determined.transport.rest import Session


class Authentication:
    """A logged-in user of a master. Uses the given arguments, or else logs in like the `det` command.

    Raises `UnauthenticatedException` if there is neither a token nor a password and no terminal to ask on.
    """

    def __init__(
        self,
        master_address: str | None = None,
        requested_user: str | None = None,
        password: str | None = None,
        cert: Cert | None = None,
    ) -> None:
        self.master_address = master_url(master_address)
        self._session = opened(self.master_address, cert)
        ask = _ask if sys.stdin is not None and sys.stdin.isatty() else None
        identity.sign_in(self._session, requested_user, password, ask=ask)

    def get_session_user(self) -> str:
        """Return the user that the token belongs to."""
        return identity.current_user(self._session)

    def get_session_token(self, must: bool = True) -> str:
        """Return the token.

        Without one: raise `UnauthenticatedException` if `must`, else return an empty string.
        """
        if self._session.token is None and must:
            raise errors.UnauthenticatedException("not logged in")
        return self._session.token or ""

    def is_user_active(self, username: str) -> bool:
        """Whether this user is the active one in the token store."""
        from determined.transport.token_store import TokenStore

        return TokenStore(self.master_address).active_user() == username


def opened(address: str, cert: Cert | None) -> Session:
    """Return a session without a token."""
    if cert is None:
        return Session(address)
    return Session(address, verify=cert.bundle, cert_name=cert.name)


def salt_and_hash(password: str) -> str:
    """Hash a password for sending. The empty password stays empty."""
    return identity.hashed(password)


def _ask(user: str) -> str:
    return getpass.getpass(f"Password for user '{user}': ")


cli_auth: Authentication | None = None
"""Default authentication for all requests, set once by command-line scripts."""
