"""Writes the list of decisions: number, title, and the question that one answers, or how it begins."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "decisions"
HEAD = """# Decisions

Choices between real alternatives, each with its reasons and the alternatives that were rejected. A new
decision is added next to the old ones; a replaced decision says which one replaced it.

| number | decision | about |
|---|---|---|
"""
TITLE = re.compile(r"# (\d+)[.:] (.+)")
LABEL = re.compile(r"^\*\*\w+\.?\*\*( \([^)]*\)\.?)?\s+")
SENTENCE_END = re.compile(r"(?<=[.?])\s+(?=[A-Z`*])")


def page() -> str:
    """The page `docs/decisions/index.md`."""
    files = sorted(FOLDER.glob("[0-9]*.md"))
    return HEAD + "\n".join(map(_row, files)) + "\n"


def _row(file: Path) -> str:
    title, *paragraphs = file.read_text().strip().split("\n\n")
    named = TITLE.fullmatch(title)
    if named is None:
        raise ValueError(f"{file}: the first line must be '# NUMBER. TITLE', not '{title}'")
    text = next(each for each in paragraphs if not each.startswith("#"))
    about = _about(" ".join(text.split())).replace("|", "\\|")
    return f"| {int(named[1])} | [{named[2][0].upper()}{named[2][1:]}]({file.name}) | {about} |"


def _about(text: str) -> str:
    """How a paragraph begins, and the question that it ends with, if it does."""
    first, *others = SENTENCE_END.split(LABEL.sub("", text))
    return f"{first} {others[-1]}" if others and others[-1].endswith("?") else first
