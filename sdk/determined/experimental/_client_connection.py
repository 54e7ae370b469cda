"""The one connection of this process, which all functions of `client` share."""

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
    """Connect to a cluster as a user. Without it the first call of the client connects with the defaults.

    Args:
        master: Address as `HOST:PORT` or `http(s)://HOST:PORT`. Default: `DET_MASTER`, else `localhost:8080`.
        user: Name of the user. Default: `DET_USER` with `DET_PASS`, else of the last `det user login`, else
            `determined`.
        password: The user's password. Not needed if a login of this user is stored; on a terminal you are
            prompted for it.
        cert_path: File with the certificates to verify the master's certificate with, for a master with TLS.
        cert_name: The host name that the master's certificate must have, if it is not that of the address.
        noverify: True to skip the verification of the certificate.

    Raises:
        ValueError: A connection exists already, or the address is not valid.
        MasterNotFoundException: No master answers at the address.
        UnauthenticatedException: The password is wrong.

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
    """End the session of this connection's user: its token is revoked and deleted. Without a connection
    it only logs a warning.
    """
    if _determined is None:
        logger.warning("client.logout() does nothing: there was no login before")
        return
    _determined.logout()


def connected(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Connects before the first call."""

    @functools.wraps(function)
    def call(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        if _determined is None:
            login()
        return function(*args, **kwargs)

    return call


def connection() -> Determined:
    if _determined is None:
        raise RuntimeError("there is no connection: call client.login() first")
    return _determined
