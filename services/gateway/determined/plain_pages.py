"""The pages that need no build: what is in their files, with the style that they share."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parents[1] / "static"
PLACE = "/* plain.css */"


def plain_page(name: str) -> str:
    """The text of a page in `static/`."""
    style = (STATIC / "plain.css").read_text("utf-8")
    return (STATIC / name).read_text("utf-8").replace(PLACE, style)
