"""What the broker says no to: for now, as in any outage, or for good."""

import re
from typing import Any

from det_contracts import subjects

ACCOUNT_IS_FULL = 10002
"""The one refusal with code 400 that passes: the account has used up its space."""
TOO_LARGE = 10054
_FOR_GOOD = (400, 403, 404)
"""Codes of answers that say the message is wrong; a busy, full or leaderless broker gives others."""
_FORBIDDEN = re.compile(r'permissions violation for publish to "([^"]*)"', re.IGNORECASE)


class Refused(Exception):
    """The broker will never take this message; the text says why, and what to do."""


class TooLarge(Refused):
    """It would take a smaller one."""


def of_answer(subject: str, error: dict[str, Any]) -> Exception:
    """What to raise for the error in a stream's answer to a message: `Refused`, or OSError if it may pass."""
    why = f"{error.get('description', error)} (error {error.get('err_code')})"
    if error.get("err_code") == TOO_LARGE:
        return TooLarge(f"{why}; report fewer or shorter values, or store them as a file of a checkpoint")
    if error.get("code") in _FOR_GOOD and error.get("err_code") != ACCOUNT_IS_FULL:
        return Refused(f"{why}; ask who runs the cluster to look at stream {stream_of(subject)}")
    return OSError(f"{subject}: {why}")


def too_large(size: int, most: int) -> TooLarge:
    """The refusal of a message of `size` bytes, of which the broker takes `most`."""
    return TooLarge(
        f"{size:,} bytes, the cluster takes {most:,} in one message; "
        "report fewer or shorter values, or store them as a file of a checkpoint"
    )


def forbidden(subject: str) -> Refused:
    """The refusal of a subject that the credentials do not allow."""
    return Refused(
        f"the credentials of this run do not allow to publish to {subject}; "
        "ask who runs the cluster whether the worker has the key of this broker"
    )


def forbidden_subject(error: Exception) -> str | None:
    """The subject, in lower case, that an error of the connection says nothing may be published to."""
    forbidden = _FORBIDDEN.search(str(error))
    return forbidden[1].lower() if forbidden else None


def stream_of(subject: str) -> str:
    """The stream that a subject belongs to."""
    first = subject.partition(".")[0]
    return next(name for name, pattern in subjects.STREAM_SUBJECTS.items() if pattern.startswith(f"{first}."))
