"""Gathers what the site is built from: the Markdown of the repository and the files that it links to.

Pages keep their places, so that a link between them works on the site as it does in a checkout.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = re.compile(r"tests/(?!simulation/README)|webui/|\.github/")
LINK = re.compile(r"(?<=\]\()[^)\s#]+(?=(#[^)\s]*)?(?: \"[^\"]*\")?\))")
# Long lists of what changed hold every word, and would come before the pages that explain it.
NOT_SEARCHED = ("CHANGELOG.md",)
CODE = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)


def gather(target: Path) -> None:
    """Fill the empty folder `target`."""
    for path in _pages():
        text = (ROOT / path).read_text()
        header = "---\nsearch:\n  exclude: true\n---\n\n" if path in NOT_SEARCHED else ""
        _write(target / path, header + _with_pages_of_folders(text, ROOT / path))
        for linked in _linked_files(text, ROOT / path):
            place = target / linked.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(linked, place)


def _pages() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],  # noqa: S607
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for path in listed.stdout.split("\n") if path and not LEFT_OUT.match(path)]


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def _links(text: str) -> list[str]:
    return [found.group() for found in LINK.finditer(CODE.sub("", text)) if "://" not in found.group()]


def _linked_files(text: str, page: Path) -> set[Path]:
    targets = {(page.parent / link).resolve() for link in _links(text)}
    return {one for one in targets if one.is_file() and one.suffix != ".md" and one.is_relative_to(ROOT)}


def _with_pages_of_folders(text: str, page: Path) -> str:
    """A link to a folder leads to its README or index; one to a folder without either, to nothing."""

    def lead(found: re.Match[str]) -> str:
        folder = page.parent / found.group()
        if not folder.is_dir():
            return found.group()
        inside = [name for name in ("README.md", "index.md") if (folder / name).exists()]
        return f"{found.group().rstrip('/')}/{inside[0]}" if inside else found.group()

    return LINK.sub(lead, text)
