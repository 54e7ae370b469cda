"""Pages that need no build step: static files with a shared style sheet."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"
STYLE_MARKER = "/* plain.css */"


def plain_page(name: str) -> str:
    """The text of a page in `static/`, with the style inserted."""
    style = (STATIC / "plain.css").read_text("utf-8")
    return (STATIC / name).read_text("utf-8").replace(STYLE_MARKER, style)
