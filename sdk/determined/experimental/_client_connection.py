"""The process-wide connection that all functions of `client` share."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from determined.experimental._determined import Determined

logger = logging.getLogger("determined.client")
_determined: Determined | None = None

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


def login(
    master: str | None = None,
    user: str | None = None,
    password: str | None = None,
    cert_path: str | None = None,
    cert_name: str | None = None,
    noverify: bool = False,
) -> None:
    """Connect to a cluster as a user.

    If you do not call it, the first call of the client connects with defaults.

    Args:
        master: Address as `HOST:PORT` or `http(s)://HOST:PORT`. Default: `DET_MASTER`, else `localhost:8080`.
        user: User name. Default: `DET_USER` with `DET_PASS`, else the user of the last `det user login`,
            else `determined`.
        password: The user's password. Not needed if a login of this user is stored. On a terminal you are
            prompted for it.
        cert_path: For a master with TLS, a file with the certificates for verifying the master's
            certificate.
        cert_name: Host name that the master's certificate must have, if it differs from the address.
        noverify: True to skip certificate verification.

    Raises:
        ValueError: If a connection already exists, or the address is invalid.
        OSError: If `cert_path` cannot be read.
        MasterNotFoundException: If no master answers at the address.
        UnauthenticatedException: If the password is wrong.

    Example:
        ```python
        from determined.experimental import client

        client.login(master="https://cluster.example.com", user="ada")
        ```
    """
    global _determined
    if _determined is not None:
        raise ValueError(
            "call client.login() once, before any other call of the client; for several connections create "
            "client.Determined objects"
        )
    _determined = Determined(master, user, password, cert_path, cert_name, noverify)


def logout() -> None:
    """Log out this connection's user. Its token is revoked and deleted.

    Without a connection it only logs a warning.

    Example:
        ```python
        client.login("http://cluster:8080", "ann")
        client.logout()
        ```
    """
    if _determined is None:
        logger.warning("client.logout() does nothing: there was no login before")
        return
    _determined.logout()


def connected(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Decorator that connects before the first call."""

    @functools.wraps(function)
    def call(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        if _determined is None:
            login()
        return function(*args, **kwargs)

    return call


def current() -> Determined | None:
    """Return the connection, or None before the first login."""
    return _determined


def connection() -> Determined:
    if _determined is None:
        raise RuntimeError("there is no connection: call client.login() first")
    return _determined
