"""Gathers what the site is built from: the Markdown of the repository and the files that it links to.

Pages keep their places, so that a link between them works on the site as it does in a checkout.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = re.compile(r"tests/(?!simulation/README)|webui/|\.github/")
LINK = re.compile(r"(?<=\]\()[^)\s#]+(?=(#[^)\s]*)?(?: \"[^\"]*\")?\))")
# Long lists and records of decisions hold every word, and would come before the pages that explain it.
NOT_SEARCHED = re.compile(
    r"CHANGELOG\.md|benchmarks/|tests/simulation/|docs/guarantees\.md|docs/messages\.md|docs/decisions/|"
    r"docs/reference/all-of-0\.25\.md"
)
CODE = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)


def gather(target: Path) -> None:
    """Fill the empty folder `target`."""
    for path in _pages():
        text = (ROOT / path).read_text()
        header = "---\nsearch:\n  exclude: true\n---\n\n" if NOT_SEARCHED.match(path) else ""
        _write(target / path, header + _with_pages_of_folders(text, ROOT / path))
        for linked in _linked_files(text, ROOT / path):
            place = target / linked.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(linked, place)
    for folder in sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir()):
        _offer(folder, target)


def _offer(folder: Path, target: Path) -> None:
    """Put a zip file of an example beside its page, for readers without a checkout, and link to it."""
    name = folder.relative_to(ROOT)
    files = [path for path in _listed(f"{name}/*") if (ROOT / path).is_file()]
    if not files:
        return
    archive = target / f"{name}.zip"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
        for path in files:
            content.write(ROOT / path, path)
    page = target / name / "README.md"
    title, text = page.read_text().split("\n", 1)
    offer = (
        f"[Download all files of this example](../{archive.name}) (`unzip {archive.name}` creates `{name}`)."
    )
    page.write_text(f"{title}\n\n{offer}\n{text}")


def _pages() -> list[str]:
    return [path for path in _listed("*.md") if not LEFT_OUT.match(path)]


def _listed(pattern: str) -> list[str]:
    """The files of the checkout that git does not ignore, and that match."""
    listed = subprocess.run(  # noqa: S603 - patterns of this file
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],  # noqa: S607
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for path in listed.stdout.split("\n") if path]


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def _links(text: str) -> list[str]:
    return [match.group() for match in LINK.finditer(CODE.sub("", text)) if "://" not in match.group()]


def _linked_files(text: str, page: Path) -> set[Path]:
    targets = {(page.parent / link).resolve() for link in _links(text)}
    return {
        target
        for target in targets
        if target.is_file() and target.suffix != ".md" and target.is_relative_to(ROOT)
    }


def _with_pages_of_folders(text: str, page: Path) -> str:
    """A link to a folder leads to its README or index; one to a folder without either, to nothing."""

    def lead(match: re.Match[str]) -> str:
        folder = page.parent / match.group()
        if not folder.is_dir():
            return match.group()
        inside = [name for name in ("README.md", "index.md") if (folder / name).exists()]
        return f"{match.group().rstrip('/')}/{inside[0]}" if inside else match.group()

    return LINK.sub(lead, text)
