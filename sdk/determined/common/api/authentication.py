"""Who a client script acts as, under the names that such scripts import."""

from __future__ import annotations

import getpass
import sys

from determined.common.api import errors
from determined.common.api.certs import Cert
from determined.transport import identity
from determined.transport.address import master_url
from determined.transport.rest import Session


class Authentication:
    """A user of a master, logged in: by what is given, else as the `det` command does.

    Raises `UnauthenticatedException` where neither a token nor a password is at hand and nobody can be asked.
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
        """Whose token it is."""
        return identity.current_user(self._session)

    def get_session_token(self, must: bool = True) -> str:
        """The token; without one empty, or `UnauthenticatedException` if there must be one."""
        if self._session.token is None and must:
            raise errors.UnauthenticatedException("not logged in")
        return self._session.token or ""

    def is_user_active(self, username: str) -> bool:
        """Whether this user is the active one of the stored tokens."""
        from determined.transport.token_store import TokenStore

        return TokenStore(self.master_address).active_user() == username


def opened(address: str, cert: Cert | None) -> Session:
    """A session without a token."""
    if cert is None:
        return Session(address)
    return Session(address, verify=cert.bundle, cert_name=cert.name)


def salt_and_hash(password: str) -> str:
    """A password as it travels; the empty one stays empty."""
    return identity.hashed(password)


def _ask(user: str) -> str:
    return getpass.getpass(f"Password for user '{user}': ")


cli_auth: Authentication | None = None
"""What a script of the command line sets once for all its requests."""
