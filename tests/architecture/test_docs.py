"""Generated pages are those that the code generates today; links in the documents lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.fixtures.service_processes import run_module

ROOT = Path(__file__).parents[2]
PAGES = [
    p for p in ROOT.rglob("*.md") if not {".venv", ".git", "build", "listings", "node_modules"} & set(p.parts)
]


def test_generated_pages_are_current():
    done = run_module("docs.generate", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def broken_links(page):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    return [target for target in targets if not (page.parent / target).exists()]


def test_links_lead_somewhere():
    assert PAGES
    broken = [f"{page.relative_to(ROOT).as_posix()}: {link}" for page in PAGES for link in broken_links(page)]
    assert not broken, "\n" + "\n".join(broken)


def missing_files(page):
    """Files that the page of a folder names in its table of contents, and that are not in the folder."""
    cells = re.findall(r"^\| ([^|]+) \|", page.read_text(), re.MULTILINE)
    if page.parent == ROOT / "services" / "kit":
        # Its table is by question, with the files in the second column.
        cells = page.read_text().splitlines()
    named = {name for cell in cells for name in re.findall(r"`([\w./]+\.py)`", cell)}
    return [name for name in named if not (page.parent / name).exists() and not list(page.parent.rglob(name))]


def test_a_folders_page_names_files_that_are_there():
    pages = [page for page in PAGES if page.name == "README.md" and page.parent != ROOT]
    assert len(pages) > 10
    missing = {page.relative_to(ROOT).as_posix(): names for page in pages if (names := missing_files(page))}
    assert missing == {}


def guarantees():
    """The rows of the page: what is promised, by which tests, and what they did without the fix."""
    page = (ROOT / "docs" / "guarantees.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [row for row in rows if row[0] != "guarantee"]


def named_tests(cell):
    """The file and the name of each test in a cell; a bare name is in the file before it."""
    path = ""
    for reference in re.findall(r"`([^`]+)`", cell):
        if reference.startswith("tests/"):
            path, _, name = reference.partition("::")
            yield path, name
        elif reference.startswith("test_"):
            yield path, reference


def test_guarantees_name_tests_that_are_there():
    named = [test for row in guarantees() for test in named_tests(row[1])]
    assert len(named) > 200
    texts = {path: (ROOT / path).read_text() if (ROOT / path).is_file() else "" for path, _ in named}
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_dir() and f"def {name or 'test_'}" not in texts[path]
    ]
    assert missing == []


@pytest.mark.parametrize("page", ["docs/trust.md", "docs/guides/hardening.md"])
def test_claims_about_trust_name_tests_that_are_there(page):
    named = [
        path for path in re.findall(r"`([^`\s]+)`", (ROOT / page).read_text()) if path.startswith("tests/")
    ]
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_guarantees_say_what_their_tests_did_without_the_fix():
    """Or that a whole cluster is tried, with the tier where that is not the one of each change."""
    rows = guarantees()
    assert [row[0] for row in rows if len(row) != 3 or row[2].strip() in ("", "-")] == []
    assert [row[0] for row in rows if not list(named_tests(row[1]))] == []
    full = [row for row in rows if all(path.startswith("tests/full/") for path, _ in named_tests(row[1]))]
    assert full
    assert [row[0] for row in full if row[2] == "whole"] == []


def test_each_decision_names_its_alternatives():
    decisions = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert len(decisions) > 80
    without = [
        page.name
        for page in decisions
        if not re.search("alternative|why not", page.read_text(), re.IGNORECASE)
    ]
    assert without == []
