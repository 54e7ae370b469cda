"""Classifies refusals by the broker: temporary, as in an outage, or permanent."""

import re
from typing import Any

from det_contracts import subjects

ACCOUNT_IS_FULL = 10002
"""The one temporary refusal with code 400: the account has used up its storage."""
TOO_LARGE = 10054
_FOR_GOOD = (400, 403, 404)
"""Response codes meaning that the message is wrong. Busy, full or leaderless brokers send others."""
_FORBIDDEN = re.compile(r'permissions violation for publish to "([^"]*)"', re.IGNORECASE)


class Refused(Exception):
    """The broker will never accept this message. The text says why and what to do."""


class TooLarge(Refused):
    """The message is too large; a smaller one would be accepted."""


def of_answer(subject: str, error: dict[str, Any]) -> Exception:
    """Return the exception for an error response from a stream: `Refused`, or OSError if it is temporary."""
    why = f"{error.get('description', error)} (error {error.get('err_code')})"
    if error.get("err_code") == TOO_LARGE:
        return TooLarge(f"{why}; report fewer or shorter values, or store them as a file of a checkpoint")
    if error.get("code") in _FOR_GOOD and error.get("err_code") != ACCOUNT_IS_FULL:
        return Refused(f"{why}; ask the cluster's administrator to check stream {stream_of(subject)}")
    return OSError(f"{subject}: {why}")


def too_large(size: int, most: int) -> TooLarge:
    """Return the refusal of a message of `size` bytes, with a limit of `most`."""
    return TooLarge(
        f"{size:,} bytes, but the cluster accepts at most {most:,} in one message; "
        "report fewer or shorter values, or store them as a file of a checkpoint"
    )


def forbidden(subject: str) -> Refused:
    """Return the refusal of a subject that the credentials do not allow."""
    return Refused(
        f"the credentials of this run do not allow publishing to {subject}; "
        "ask the cluster's administrator whether the worker has this broker's key"
    )


def forbidden_subject(error: Exception) -> str | None:
    """Return the subject, in lower case, that a connection error says may not be published to, or None."""
    forbidden = _FORBIDDEN.search(str(error))
    return forbidden[1].lower() if forbidden else None


def stream_of(subject: str) -> str:
    """Return the name of the stream that a subject belongs to."""
    first = subject.partition(".")[0]
    return next(name for name, pattern in subjects.STREAM_SUBJECTS.items() if pattern.startswith(f"{first}."))
