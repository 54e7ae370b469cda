"""Texts that filters look for in the catalogue's tables."""

from __future__ import annotations

from det_contracts.limits import TITLE_CHARACTERS
from det_contracts.problems import invalid


def check_length(field: str, text: str) -> str:
    """Return a text that a filter looks for.

    Raises `Refused` (400) if it is too long: databases take patterns of some ten thousand bytes.
    """
    if len(text) > TITLE_CHARACTERS:
        raise invalid(
            f"{field} has {len(text):,} characters, and at most {TITLE_CHARACTERS:,} are looked for at once"
        )
    return text
