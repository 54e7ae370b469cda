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
