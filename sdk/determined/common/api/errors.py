"""Errors between a client and the master (client spec, section 1).

BadRequestException            the master, or the connection to it, refused the request
├── MasterNotFoundException    no master answers at the address
│   └── UntrustedCertificate   the server's certificate is not trusted
└── StatusException            a response with an error status
    ├── ForbiddenException (403), UnauthenticatedException (401)
    └── APIException           any other error status
        ├── NotFoundException (404)
        └── DeleteFailedException  the request succeeded, but something was not deleted
BadResponseException           the response cannot be understood
└── EmptyResultException       the response is empty
CorruptTokenCacheException, CorruptCertificateCacheException
"""

from __future__ import annotations


class BadRequestException(Exception):
    """The master refused the request; `message` says why."""

    def __init__(self, message: str, *args: object) -> None:
        super().__init__(message, *args)
        self.message = message

    def __str__(self) -> str:
        return self.message


class MasterNotFoundException(BadRequestException):
    """No master answers at the address."""


class UntrustedCertificate(MasterNotFoundException):
    """The master's TLS certificate is not signed by an authority that this client trusts."""


class StatusException(BadRequestException):
    """The master answered with the error status `status_code`. Determined 0.25 does not have this class.

    It keeps the 0.25 behavior that `except APIException` does not catch authentication and permission errors.
    """

    def __init__(self, message: str, status_code: int, response_error: str | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.response_error = response_error


class APIException(StatusException):
    """The master answered with an error status that has no specific class."""


class NotFoundException(APIException):
    """The object does not exist, or this user may not see it (status 404)."""

    def __init__(self, message: str, status_code: int = 404, response_error: str | None = None) -> None:
        super().__init__(message, status_code, response_error)


class ForbiddenException(StatusException):
    """The user is known but lacks permission (status 403)."""

    def __init__(self, message: str, status_code: int = 403, response_error: str | None = None) -> None:
        super().__init__(f"Forbidden({message})", status_code, response_error)


class UnauthenticatedException(StatusException):
    """The token is missing, invalid or expired (status 401)."""

    def __init__(self, message: str = "", status_code: int = 401, response_error: str | None = None) -> None:
        reason = f": {message}" if message else ""
        advice = "" if "det user login" in message else "; log in with 'det user login USERNAME'"
        super().__init__(f"Unauthenticated{reason}{advice}", status_code, response_error)


class DeleteFailedException(APIException):
    """Something could not be deleted, although the request itself succeeded."""

    def __init__(self, error_message: str) -> None:
        super().__init__(error_message, 200)


class BadResponseException(Exception):
    """The master's response cannot be understood."""

    def __init__(self, message: str, *args: object) -> None:
        super().__init__(message, *args)
        self.message = message

    def __str__(self) -> str:
        return self.message


class EmptyResultException(BadResponseException):
    """The response was unexpectedly empty."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class CorruptTokenCacheException(Exception):
    """The token file was unreadable and has been removed."""

    def __init__(self) -> None:
        super().__init__("Attempted to read a corrupted token cache; it was removed, please try again")


class CorruptCertificateCacheException(Exception):
    """The file of trusted certificates is unreadable."""

    def __init__(self) -> None:
        super().__init__("Attempted to read a corrupted certificate cache; remove it and try again")
