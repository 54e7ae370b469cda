"""All limits on message sizes.

Each limit leaves room for the next: a command or fact becomes an event with a few additional fields, and an
event becomes a message with headers. Only the last limit is the broker's. It closes the connection of a
client that exceeds it, so nothing close to that size may ever be sent.
"""

from __future__ import annotations

MESSAGE_BYTES = 8 * 1024 * 1024
"""A message with its headers, as configured in the broker (`max_payload`)."""
EVENT_BYTES = MESSAGE_BYTES - 256 * 1024
"""An event as appended by an owner, without headers."""
# The event that creates an experiment holds the configuration twice, completed and as text: 2 x 3 MiB are
# below 8 MiB.
STATED_BYTES = 3 * 1024 * 1024
"""A command, or a fact from a script or worker. An event that contains it twice still fits."""
WITNESS_BYTES = STATED_BYTES - 1024
"""A fact as stated by its sender. The intake adds fields to it."""
WITNESS_MESSAGES = 1000
"""Facts of one sender that await admission. Further ones are refused, and the sender retries."""
TEXT_CHARACTERS = 10_000
"""Text for users in a fact."""
TITLE_CHARACTERS = 2_000
"""Names, and all other user-supplied texts without a specific limit in `bounds`."""
PAGE_CHARACTERS = 1024 * 1024
"""Notes, and the settings that a page of the web UI stores for its user."""
PROPERTIES_BYTES = 1024 * 1024
"""An object with arbitrary user-supplied content, as JSON."""
METRIC_BYTES = 64 * 1024
"""The metric that completes an operation, as JSON: a number, or a value for a custom search."""
LABELS = 1_000
"""Labels of one object."""
WORKER_SLOTS = 4096
"""Slots that one worker may offer, and runs that it may hold."""
# JavaScript reads all numbers as doubles, which skip integers beyond that.
MAX_EXACT_INTEGER = 2**53
"""Integers up to this value are interpreted alike by all JSON readers."""
NAME_CHARACTERS = 512
"""Length of an identifier. Databases index by it, and PostgreSQL allows 2,700 bytes for that."""


def is_name(text: str) -> bool:
    """Whether a text is valid as an identifier in every store. The empty text is valid.

    >>> is_name("1.a"), is_name("1.\\0"), is_name("x" * 513)
    (True, False, False)
    """
    return len(text) <= NAME_CHARACTERS and "\0" not in text
