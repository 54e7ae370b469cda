"""What can go wrong between a client and the master (client spec, section 1).

BadRequestException            the master, or the way to it, refused
├── MasterNotFoundException    nobody answers at the address
│   └── UntrustedCertificate   somebody answers, with a certificate that nobody vouches for
└── StatusException            an answer with an error status
    ├── ForbiddenException (403), UnauthenticatedException (401)
    └── APIException           one that has no class of its own
        ├── NotFoundException (404)
        └── DeleteFailedException  the answer was well, and says that something is still there
BadResponseException           the answer cannot be understood
└── EmptyResultException       it holds nothing
CorruptTokenCacheException, CorruptCertificateCacheException
"""

from __future__ import annotations


class BadRequestException(Exception):
    """The master refused; `message` says why."""

    def __init__(self, message: str, *args: object) -> None:
        super().__init__(message, *args)
        self.message = message

    def __str__(self) -> str:
        return self.message


class MasterNotFoundException(BadRequestException):
    """No master answers at the address."""


class UntrustedCertificate(MasterNotFoundException):
    """The master's TLS certificate is signed by nobody this client trusts."""


class StatusException(BadRequestException):
    """The master answered with the error status `status_code`; a class of ours, above those of 0.25.

    There `except APIException` does not catch that somebody is not logged in, or may not do something.
    """

    def __init__(self, message: str, status_code: int, response_error: str | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.response_error = response_error


class APIException(StatusException):
    """The master answered with an error status that has no class of its own."""


class NotFoundException(APIException):
    """There is no such thing, or this user may not see it (status 404)."""

    def __init__(self, message: str, status_code: int = 404, response_error: str | None = None) -> None:
        super().__init__(message, status_code, response_error)


class ForbiddenException(StatusException):
    """The user is known but may not do this (status 403)."""

    def __init__(self, message: str, status_code: int = 403, response_error: str | None = None) -> None:
        super().__init__(f"Forbidden({message})", status_code, response_error)


class UnauthenticatedException(StatusException):
    """The token is missing, wrong or expired (status 401)."""

    def __init__(self, message: str = "", status_code: int = 401, response_error: str | None = None) -> None:
        reason = f": {message}" if message else ""
        advice = "" if "det user login" in message else "; log in with 'det user login USERNAME'"
        super().__init__(f"Unauthenticated{reason}{advice}", status_code, response_error)


class DeleteFailedException(APIException):
    """Something could not be deleted, although the request for it was answered well."""

    def __init__(self, error_message: str) -> None:
        super().__init__(error_message, 200)


class BadResponseException(Exception):
    """The master's answer cannot be understood."""

    def __init__(self, message: str, *args: object) -> None:
        super().__init__(message, *args)
        self.message = message

    def __str__(self) -> str:
        return self.message


class EmptyResultException(BadResponseException):
    """An answer was expected to hold something and was empty."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class CorruptTokenCacheException(Exception):
    """The file of stored tokens was unreadable; it has been removed."""

    def __init__(self) -> None:
        super().__init__("Attempted to read a corrupted token cache; it was removed, please try again")


class CorruptCertificateCacheException(Exception):
    """The file of trusted certificates is unreadable."""

    def __init__(self) -> None:
        super().__init__("Attempted to read a corrupted certificate cache; remove it and try again")
