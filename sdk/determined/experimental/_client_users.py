"""Functions of `client` about users."""

from __future__ import annotations

from typing import NoReturn

from determined.experimental._client_connection import connected, connection
from determined.experimental._user import User


@connected
def create_user(username: str, admin: bool, password: str | None = None, remote: bool = False) -> User:
    """Create a user, who can log in immediately. Administrators only.

    Args:
        username: Login name.
        admin: Whether the user is an administrator.
        password: Login password; empty if not given.
        remote: Whether the user logs in through the identity provider instead of a password.

    Returns:
        The user.

    Example:
        ```python
        client.login(user="admin", password="the password of admin")
        client.create_user("ann", admin=False, password="a first password")
        ```
    """
    return connection().create_user(username, admin, password, remote)


@connected
def get_user_by_id(user_id: int) -> User:
    """Return a user.

    Args:
        user_id: Id of the user.

    Raises:
        NotFoundException: If there is no such user.

    Example:
        ```python
        owner = client.get_user_by_id(3)
        print(owner.username)
        ```
    """
    return connection().get_user_by_id(user_id)


@connected
def get_user_by_name(user_name: str) -> User:
    """Return a user.

    Args:
        user_name: Login name of the user.

    Returns:
        The user.

    Raises:
        NotFoundException: If there is no such user.

    Example:
        ```python
        client.get_user_by_name("ann").deactivate()
        ```
    """
    return connection().get_user_by_name(user_name)


@connected
def whoami() -> User:
    """Return the user of this connection.

    Returns:
        The user.

    Example:
        ```python
        print(client.whoami().username)
        ```
    """
    return connection().whoami()


@connected
def list_users() -> list[User]:
    """Return all users.

    Returns:
        One record per user.

    Example:
        ```python
        names = [user.username for user in client.list_users()]
        ```
    """
    return connection().list_users()


@connected
def get_session_username() -> str:
    """Return the name of the user of this connection.

    Example:
        ```python
        print("acting as", client.get_session_username())
        ```
    """
    return connection().get_session_username()


@connected
def add_oauth_client(domain: str, name: str) -> NoReturn:
    """Always fails: OAuth clients belonged to Determined's enterprise edition. Programs use API tokens.

    Args:
        domain: Not used.
        name: Not used.

    Raises:
        EnterpriseOnlyError: Always.
    """
    connection().add_oauth_client(domain, name)


@connected
def list_oauth_clients() -> NoReturn:
    """Always fails: OAuth clients belonged to Determined's enterprise edition. Programs use API tokens.

    Raises:
        EnterpriseOnlyError: Always.
    """
    connection().list_oauth_clients()


@connected
def remove_oauth_client(client_id: str) -> NoReturn:
    """Always fails: OAuth clients belonged to Determined's enterprise edition. Programs use API tokens.

    Args:
        client_id: Not used.

    Raises:
        EnterpriseOnlyError: Always.
    """
    connection().remove_oauth_client(client_id)
