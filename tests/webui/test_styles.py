"""Class names are global: no sheet may change what other pages look like once it is loaded."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "webui" / "src"
ALWAYS = ("tokens.css", "ui/", "shell/")
"""Sheets that every page has from the start, and whose classes all pages use."""


def selectors(sheet: str) -> Iterator[str]:
    """Of all rules, one by one: `.a, .b:is(.c, .d)` are two."""
    for head in re.findall(r"([^{};]+)\{", re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)):
        if not head.strip().startswith("@"):
            yield from map(str.strip, re.split(r",(?![^(]*\))", head))


def classes(selector: str) -> set[str]:
    return set(re.findall(r"\.([A-Za-z][\w-]*)", re.sub(r'"[^"]*"', "", selector)))


def bare(selector: str) -> str:
    """The class that a selector styles wherever it is: `a` by `.a:hover` and `.a > li`, none by `.a .b`."""
    match = re.match(r"\.([A-Za-z][\w-]*)(?![\w.-])", selector)
    return match[1] if match and len(classes(selector)) == 1 else ""


def unscoped(sheets: dict[str, str]) -> list[str]:
    """What one sheet says of a class that is another's, without a class of its own beside it.

    Args:
        sheets: the text of each sheet by its path in `webui/src`.

    Returns:
        A sentence for each.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    named: dict[str, set[str]] = defaultdict(set)
    for path, text in sheets.items():
        for selector in selectors(text):
            owners[bare(selector)].add(path)
            for name in classes(selector):
                named[name].add(path)
    owners.pop("", None)
    wrong = [
        f".{name} is styled without a scope in {sorted(paths)}"
        for name, paths in owners.items()
        if len(paths) > 1
    ]
    for path, text in sheets.items():
        if path.startswith(ALWAYS):
            continue
        for selector in selectors(text):
            if (name := bare(selector)) and (others := named[name] - {path}):
                wrong.append(f".{name} is anyone's by {path}, and named in {sorted(others)}")
            elif (names := classes(selector)) and not any(named[name] == {path} for name in names):
                wrong.append(f"{selector} in {path} has no class of that sheet alone")
    return sorted(set(wrong))


def test_no_sheet_changes_what_another_page_looks_like():
    sheets = {str(path.relative_to(SOURCES)): path.read_text() for path in SOURCES.rglob("*.css")}
    assert len(sheets) > 15
    assert unscoped(sheets) == []


def test_it_finds_what_would_change_others():
    shared = {"ui/base.css": ".card { color: red } .card > header { gap: 1px }"}
    fine = ".mine .card { gap: 2px } .mine, .mine:hover > i { gap: 1px }"
    assert not unscoped(shared | {"pages/a.css": fine})
    assert unscoped(shared | {"pages/a.css": "@media (width > 1px) { .card .card { gap: 2px } }"})
    assert unscoped(shared | {"pages/a.css": ".card > b { gap: 2px }"})
    assert unscoped({"pages/a.css": ".edge { gap: 2px }", "pages/b.css": ".edge i { gap: 1px }"})
    assert unscoped({"pages/a.css": ".edge { gap: 2px }", "pages/b.css": ".its .edge { gap: 1px }"})
    assert not unscoped(
        {"pages/a.css": ".its .edge { gap: 2px }", "pages/b.css": ".other .edge { gap: 1px }"}
    )
