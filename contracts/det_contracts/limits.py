"""How large a message may be: the one place for it.

Each limit leaves room for the next: what somebody asks for or states becomes an event, with a few fields
more, and an event becomes a message, with headers. Only the last is the broker's: it closes the connection
of whoever sends more, so nothing that comes near it may ever be tried.
"""

from __future__ import annotations

MESSAGE_BYTES = 8 * 1024 * 1024
"""A message with its headers, as the broker is configured (`max_payload`)."""
EVENT_BYTES = MESSAGE_BYTES - 256 * 1024
"""An event as an owner appends it, without headers."""
STATED_BYTES = 3 * 1024 * 1024
"""A command, or a fact of a script or worker: what follows from it may hold it twice and still fits."""
WITNESS_BYTES = STATED_BYTES - 1024
"""A fact as it is stated: the intake adds what it knows of it."""
WITNESS_MESSAGES = 1000
"""Facts of one sender that wait to be admitted; further ones are refused, and sent again later."""
TEXT_CHARACTERS = 10_000
"""Of what is said to people in a fact."""
TITLE_CHARACTERS = 2_000
"""Of what people call something, and of every text of theirs that has no other limit in `bounds`."""
PAGE_CHARACTERS = 1024 * 1024
"""Of notes, and of what a page of the web UI keeps for its user."""
PROPERTIES_BYTES = 1024 * 1024
"""Of an object that people may fill as they like, as JSON."""
METRIC_BYTES = 64 * 1024
"""Of what a trial completes an operation with, as JSON: a number, or what a custom search goes by."""
LABELS = 1_000
"""Of one thing."""
WORKER_SLOTS = 4096
"""That one worker may offer; as many runs it may hold."""
WHOLE = 2**53
"""Whole numbers up to here mean the same to every reader of JSON."""
NAME_CHARACTERS = 512
"""Of what something is known by. Databases look up by it, and PostgreSQL takes 2,700 bytes for that."""


def is_name(text: str) -> bool:
    """Whether something may be known by it wherever it is kept; an empty text may.

    >>> is_name("1.a"), is_name("1.\\0"), is_name("x" * 513)
    (True, False, False)
    """
    return len(text) <= NAME_CHARACTERS and "\0" not in text
